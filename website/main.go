package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", "..", "the root of the repository")
	out := flag.String("o", "../bin/site", "the directory to write, which is replaced")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	s, err := build(*root)
	if err == nil {
		err = s.write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d pages, %d files\n", *out, len(s.pages), len(s.files))
}
