package daemon

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

// keyFileMax is the most bytes of a file with a key.
const keyFileMax = 4 << 10

// LoadMKey reads the M_Key of a fabric: one number of 64 bits, decimal or with
// 0x, alone in its file. A key that others than the file's owner can read, and
// key 0, which guards nothing, are refused.
func LoadMKey(path string) (ib.MKey, error) {
	data, err := files.Secret(path, keyFileMax)
	if err != nil {
		return 0, err
	}
	key, err := strconv.ParseUint(strings.TrimSpace(string(data)), 0, 64)
	if err != nil || key == 0 {
		// The text is not shown: it may be most of a key.
		return 0, fmt.Errorf("%s: want one number from 1 to 2^64-1, decimal or with 0x, and nothing else", path)
	}
	return ib.MKey(key), nil
}
