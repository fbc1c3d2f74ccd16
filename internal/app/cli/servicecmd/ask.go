package servicecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrDeclined is that of a change that was shown, and for which nobody said yes.
var ErrDeclined = errors.New("declined; nothing was written")

// Ask asks for a yes, spelt out.
func Ask(ctx context.Context, in io.Reader, w io.Writer) error {
	fmt.Fprint(w, "apply this change? (yes, or anything else for no) ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line := <-answer:
		if line != "yes" {
			return ErrDeclined
		}
	}
	return nil
}
