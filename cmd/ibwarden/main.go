// Command ibwarden is an InfiniBand subnet manager that keeps tenants apart
// and proves it. See `ibwarden help`.
package main

import (
	"os"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
