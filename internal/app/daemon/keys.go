package daemon

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
)

// Files in a data directory.
const (
	secretFile = "secret"
	keysFile   = "keys.json"
	// credential is the name of the master secret among systemd's credentials.
	credential = "ibwarden.secret"
)

// credentialsVariable names the directory of systemd's credentials.
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// Keyring is a master secret and what is kept of the keys made of it.
type Keyring struct {
	Ring *mkey.Ring
	Book *mkey.Book
	// Foreign are keys of a manager that was here before.
	Foreign mkey.Foreign
	dir     DataDir // empty: nothing is kept
}

// ErrNoSecret says that there is no master secret.
var ErrNoSecret = errors.New("there is no master secret")

// keysForm is the file of the book. It has no key, and of the secret a sum by
// which another one is told from it.
type keysForm struct {
	Version int        `json:"version"`
	Secret  string     `json:"secret_sum"`
	Book    *mkey.Book `json:"book"`
}

const keysVersion = 1

// keysFileMax is the most bytes of a file of a book.
const keysFileMax = 1 << 28

// ThrowAwayKeys are keys that end with the process.
func ThrowAwayKeys() *Keyring {
	return &Keyring{Ring: mkey.NewRing(Secret()), Book: new(mkey.Book)}
}

// OpenKeys reads the secret and the book of a directory. The secret is that of the
// file, if one is named; else that of systemd's credentials; else the one in the
// directory, which is made if make says so and there is neither a secret nor a
// book. A directory without either gives ErrNoSecret.
func OpenKeys(dir DataDir, file string, make bool) (*Keyring, error) {
	_, noBook := os.Lstat(dir.File(keysFile))
	first := errors.Is(noBook, fs.ErrNotExist)
	path := file
	if at := os.Getenv(credentialsVariable); path == "" && at != "" {
		if _, err := os.Lstat(filepath.Join(at, credential)); err == nil {
			path = filepath.Join(at, credential)
		}
	}
	if path == "" {
		path = dir.File(secretFile)
		_, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && first && !make:
			return nil, fmt.Errorf("%s: %w", path, ErrNoSecret)
		case errors.Is(err, fs.ErrNotExist) && !first:
			return nil, fmt.Errorf("%s: %w, and %s says that ports have keys made of it: put it back, or see docs/keys.md (lost secret)", path, ErrNoSecret, dir.File(keysFile))
		case errors.Is(err, fs.ErrNotExist):
			if err := makeSecret(path); err != nil {
				return nil, fmt.Errorf("master secret: %w", err)
			}
		}
	}
	secret, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	k := &Keyring{Ring: mkey.NewRing(secret), Book: new(mkey.Book), dir: dir}
	if !first {
		err = k.load()
	}
	if err == nil {
		k.Foreign, err = dir.loadForeign()
	}
	return k, err
}

// makeSecret makes a file with a new secret, which is on the disk when it returns.
func makeSecret(path string) error {
	var secret [mkey.SecretSize]byte
	rand.Read(secret[:]) // never fails: it would end the program
	return files.Replace(path, files.Bytes([]byte(hex.EncodeToString(secret[:])+"\n")))
}

// secretFileMax is the most bytes of a file with a secret.
const secretFileMax = 4 << 10

// readSecret reads a secret: 64 hexadecimal digits, in a regular file that nobody
// but its owner can read.
func readSecret(path string) (secret [mkey.SecretSize]byte, err error) {
	data, err := files.Secret(path, secretFileMax)
	if err != nil {
		return secret, fmt.Errorf("master secret: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if n, err := hex.Decode(secret[:], []byte(text)[:min(len(text), 2*mkey.SecretSize)]); err != nil || n != mkey.SecretSize || len(text) != 2*mkey.SecretSize {
		// The text is not shown: it may be most of a secret.
		return secret, fmt.Errorf("master secret %s: want %d hexadecimal digits and nothing else (openssl rand -hex %d makes them)", path, 2*mkey.SecretSize, mkey.SecretSize)
	}
	return secret, nil
}

func (k *Keyring) load() error {
	path := k.dir.File(keysFile)
	data, err := files.Read(path, keysFileMax)
	if err != nil {
		return err
	}
	f := keysForm{Book: new(mkey.Book)}
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if f.Version != keysVersion || f.Book == nil {
		return fmt.Errorf("%s: version %d, want %d", path, f.Version, keysVersion)
	}
	if subtle.ConstantTimeCompare([]byte(f.Secret), []byte(k.Ring.Sum())) != 1 {
		return fmt.Errorf("%s was written with another master secret: put that one back, or see docs/keys.md (lost secret)", path)
	}
	k.Book = f.Book
	return nil
}

// Keeps reports whether the book is kept anywhere.
func (k *Keyring) Keeps() bool { return k.dir != "" }

// Save keeps the book: when it returns nil it is on the disk.
func (k *Keyring) Save(b *mkey.Book) error {
	if !k.Keeps() {
		return nil
	}
	data, err := json.MarshalIndent(keysForm{keysVersion, k.Ring.Sum(), b}, "", " ")
	if err == nil {
		err = files.Replace(k.dir.File(keysFile), files.Bytes(append(data, '\n')))
	}
	if err != nil {
		return fmt.Errorf("keys %s: %w", k.dir.File(keysFile), err)
	}
	return nil
}
