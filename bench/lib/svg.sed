# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# sed -E -z -f svg.sed FILE.svg: what gnuplot drew, as a file of the source: with a
# licence, to a tenth of a pixel, and without empty groups, names of plots, and
# what is the default.

s/\?>\n/&<!-- SPDX-License-Identifier: LGPL-2.1-or-later OR MIT -->\n/
s/\n[ \t]+/\n/g
s/ stroke-linecap="butt" stroke-linejoin="miter"//g
s/ class="gridline"//g
s/<tspan font-family="sans-serif" >/<tspan>/g
s/<title>gnuplot_plot[^<]*<\/title>//g
s/ fill="none" color="black"//g
s/<g stroke="currentColor" stroke-width="1\.00"/<g/g
s/ font-family="sans-serif"//g
s/<g id="gnuplot_canvas"/& fill="none" color="black" stroke="currentColor" font-family="sans-serif"/
# A kernel's version is no length.
s/(Linux [0-9]+)\.([0-9]+)\.([0-9]+)/\1@\2@\3/g
s/([0-9]\.[0-9])[0-9]+/\1/g
s/([0-9])\.0([ ,)'])/\1\2/g
s/<filter.*<\/filter>\n//
s/(Linux [0-9]+)@([0-9]+)@([0-9]+)/\1.\2.\3/g
s/rgb\( *([0-9]+), *([0-9]+), *([0-9]+)\)/rgb(\1,\2,\3)/g
# Groups, and lines of points, that go on.
s/<g[^>]*>\n*<\/g>\n//g
s/\n+/\n/g
s/([^>])\n/\1 /g
s/>\n<\/g>/><\/g>/g
s/>\n<\/g>/><\/g>/g
s/(<g[^>]*>)\n</\1</g
