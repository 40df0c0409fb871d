// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT

package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
)

// serveFiles serves those below os.Args[2] by HTTP until it is killed; by TLS if
// a certificate and its key follow.
func serveFiles(isTLS bool) {
	if len(os.Args) < 3 || isTLS && len(os.Args) < 5 {
		die("which directory, and by TLS, which certificate and key?")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		die(err.Error())
	}
	fmt.Println("listening on", listener.Addr())
	files := http.FileServer(http.Dir(os.Args[2]))
	if isTLS {
		// As the others have it: TLS 1.3, and HTTP/1.1.
		server := http.Server{Handler: files,
			TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn,
				http.Handler){}}
		die(server.ServeTLS(listener, os.Args[3], os.Args[4]).Error())
	}
	die(http.Serve(listener, files).Error())
}
