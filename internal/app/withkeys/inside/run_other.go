//go:build !linux

package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/withkeys"
)

// Program is what Run runs.
type Program struct {
	Words, Inside  []string
	Port           umad.Port
	Root           string
	Gate           *withkeys.Gate
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

func supported() error {
	return fmt.Errorf("programs get a /dev/infiniband of their own on Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Hide is an error.
func Hide() error { return supported() }

// Run is an error.
func Run(context.Context, Program) (int, error) { return 0, supported() }

// Inside is an error.
func Inside([]string) error { return supported() }
