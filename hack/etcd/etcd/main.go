// Etcd is the server that tests and development clusters store their records in. Its releases can't be installed
// with `go install`, because their modules carry replace directives; this module depends on the server instead.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
