package past

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/ibwarden/ibwarden/internal/api/views"
)

// steps are the loads that are told apart, in per cent: what is between two is kept as the higher. With one
// more for what is not known, a cable takes three bits. Those of the map's colours are among them.
var steps = [...]int{0, 10, 20, 40, 60, 80, 100}

// stepOf is the place of a load in steps, plus one.
func stepOf(percent int) byte {
	i, _ := slices.BinarySearch(steps[:], percent)
	return byte(min(i, len(steps)-1) + 1)
}

// piece is what is kept of a period.
type piece struct {
	from   int64 // seconds since 1970
	state  views.PastState
	matrix []byte // deflated JSON; empty where it is not known, or as in the piece before
	load   []byte // by place of the cable: its step, 0 for not known
}

// head is the beginning of a piece.
type head struct {
	From  int64           `json:"from"`
	State views.PastState `json:"state"`
	Same  bool            `json:"same,omitempty"` // the matrix is that of the last piece before in the file that has one
}

// A piece in a file is its length and its checksum, the lengths of the head and the matrix, four bytes each, and then the
// head, the matrix and the load.
const pieceHead = 16

// pieceMost is the most bytes of a piece.
const pieceMost = 1 << 20

var errTorn = errors.New("a piece is torn or damaged")

// encode makes the bytes of a piece, with its matrix or not.
func (p *piece) encode(whole bool) []byte {
	h, _ := json.Marshal(head{p.from, p.state, !whole}) // of numbers and a word
	matrix := p.matrix
	if !whole {
		matrix = nil
	}
	b := bytes.NewBuffer(make([]byte, pieceHead))
	b.Write(h)
	b.Write(matrix)
	b.Write(deflated(p.load))
	out := b.Bytes()
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	binary.BigEndian.PutUint32(out[8:], uint32(len(h)))
	binary.BigEndian.PutUint32(out[12:], uint32(len(matrix)))
	binary.BigEndian.PutUint32(out[4:], crc32.ChecksumIEEE(out[8:]))
	return out
}

// decode reads the piece at the beginning of data, and says how long it is, and whether it has the matrix of one before.
func decode(data []byte) (p *piece, size int, same bool, err error) {
	if len(data) < pieceHead {
		return nil, 0, false, errTorn
	}
	size = int(binary.BigEndian.Uint32(data))
	if size < pieceHead || size > min(pieceMost, len(data)) || crc32.ChecksumIEEE(data[8:size]) != binary.BigEndian.Uint32(data[4:]) {
		return nil, 0, false, errTorn
	}
	rest := data[pieceHead:size]
	n, m := int(binary.BigEndian.Uint32(data[8:])), int(binary.BigEndian.Uint32(data[12:]))
	if n > len(rest) || m > len(rest)-n {
		return nil, 0, false, errTorn
	}
	var h head
	if err := json.Unmarshal(rest[:n], &h); err != nil {
		return nil, 0, false, errTorn
	}
	return &piece{from: h.From, state: h.State, matrix: rest[n : n+m], load: rest[n+m:]}, size, h.Same, nil
}

// deflated compresses data: loads that are all different take a sixth less without a search for what is the same.
func deflated(data []byte) (best []byte) {
	for _, level := range []int{flate.DefaultCompression, flate.HuffmanOnly} {
		var b bytes.Buffer
		w, _ := flate.NewWriter(&b, level) // one that there is
		_, _ = w.Write(data)               // to memory
		_ = w.Close()
		if best == nil || b.Len() < len(best) {
			best = b.Bytes()
		}
	}
	return best
}

func inflate(data []byte, most int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), most))
}

// matrixOf is a matrix as a piece has it; none where it is too large.
func matrixOf(m *views.Matrix) []byte {
	if m == nil {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil // it has no number that JSON has not
	}
	if text = deflated(text); len(text) > matrixMost {
		return nil
	}
	return text
}

// matrixTextMost is the most bytes of a matrix.
const matrixTextMost = 16 << 20

func readMatrix(data []byte) (*views.Matrix, error) {
	if len(data) == 0 {
		return nil, nil
	}
	text, err := inflate(data, matrixTextMost)
	if err != nil {
		return nil, err
	}
	m := new(views.Matrix)
	return m, json.Unmarshal(text, m)
}
