// Command run checks a server of HTTP/2 in plain text on 127.0.0.1 with h2spec: its argument is the port.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "the argument is no port:", err)
		os.Exit(2)
	}
	passed, err := h2spec.Run(&config.Config{
		Host:         "127.0.0.1",
		Port:         port,
		Path:         "/",
		Timeout:      10 * time.Second,
		MaxHeaderLen: 4000,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !passed {
		os.Exit(1)
	}
}
