// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

// serveFiles serves those below os.Args[2] by HTTP until it is killed.
func serveFiles() {
	if len(os.Args) < 3 {
		die("which directory?")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		die(err.Error())
	}
	fmt.Println("listening on", listener.Addr())
	die(http.Serve(listener, http.FileServer(http.Dir(os.Args[2]))).Error())
}
