package client

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// eventMax bounds an event, in bytes.
const eventMax = 1 << 20

// lines yields the data of server-sent events.
func lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewScanner(r)
		in.Buffer(nil, eventMax)
		for in.Scan() {
			data, is := bytes.CutPrefix(in.Bytes(), []byte("data: "))
			if is && !yield(data, nil) {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(nil, err)
		}
	}
}
