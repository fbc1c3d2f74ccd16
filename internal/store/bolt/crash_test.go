package bolt

import (
	"fmt"
	"io"
	"os"
)

// child is what the test binary does as another process.
func child(what, dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	switch what {
	case "hold":
		fmt.Println("open")
		io.Copy(io.Discard, os.Stdin)
	}
	s.Close()
}
