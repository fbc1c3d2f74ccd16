package cli

import (
	"bytes"
	"encoding/base64"
	bytesof "encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
)

// noKeys looks for every key that a data directory can come to, in every form,
// in all files of the script and in what the last command said: nokeys DIR
// [EXCEPT...]. What stands below one of EXCEPT is not looked at.
func noKeys(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: nokeys DIR [EXCEPT...]")
	}
	ring, err := daemon.OpenKeys(daemon.DataDir(ts.MkAbs(args[0])), "", false)
	ts.Check(err)
	secret, err := os.ReadFile(ts.MkAbs(args[0] + "/secret"))
	ts.Check(err)
	raw, err := hex.DecodeString(strings.TrimSpace(string(secret)))
	ts.Check(err)
	forms := map[string]string{strings.TrimSpace(string(secret)): "the secret", string(raw): "the secret"}
	for name, key := range keysOf(ring) {
		for _, form := range formsOf(key) {
			forms[form] = name
		}
	}
	if len(forms) < 500 {
		ts.Fatalf("%d forms of keys: not all there can be", len(forms))
	}
	var places []string
	look := func(where string, data []byte) {
		for form, name := range forms {
			if bytes.Contains(data, []byte(form)) {
				places = append(places, fmt.Sprintf("%s has %s as %q", where, name, form))
			}
		}
	}
	files := 0
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, except := range args[1:] {
			if path == ts.MkAbs(except) && d.IsDir() {
				return filepath.SkipDir
			}
			if path == ts.MkAbs(except) {
				return nil
			}
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		files++
		look(path, data)
		return err
	}))
	look("stdout", []byte(ts.ReadFile("stdout")))
	look("stderr", []byte(ts.ReadFile("stderr")))
	if found := len(places) > 0; found != neg {
		ts.Fatalf("%d files, keys found: %v, want %v: %q", files, found, neg, places)
	}
}

// keysOf are all keys that are in force, were, or will be.
func keysOf(ring *daemon.Keyring) map[string]uint64 {
	out := map[string]uint64{"SA_Key": uint64(ring.Ring.SAKey())}
	stands := ring.Book.Entries()
	for _, s := range stands {
		for g := mkey.Generation(1); g <= s.Wanted()+mkey.FurtherGenerations; g++ {
			out[fmt.Sprintf("M_Key %d of %v", g, s.ID.Port)] = uint64(ring.Ring.MKey(s.ID, g))
		}
		for _, o := range stands {
			out[fmt.Sprintf("SM_Key %v to %v", s.ID.Port, o.ID.Port)] = uint64(ring.Ring.SMKey(s.ID.Port, o.ID.Port))
		}
	}
	return out
}

// formsOf are the ways in which a key could be written.
func formsOf(key uint64) []string {
	big, little := bytesof.BigEndian.AppendUint64(nil, key), bytesof.LittleEndian.AppendUint64(nil, key)
	short := fmt.Sprintf("%x", key)
	out := []string{
		short, strings.ToUpper(short), fmt.Sprint(key), fmt.Sprint(int64(key)), string(big), string(little),
		hex.EncodeToString(little), fmt.Sprint(big)[1:], strings.Trim(strings.ReplaceAll(fmt.Sprint(big), " ", ","), "[]"),
		ib.MKey(key).String(),
	}
	for shift := range 3 { // inside of longer bytes in base64
		padded := append(make([]byte, shift), append(big, 0, 0, 0)...)
		text := base64.StdEncoding.EncodeToString(padded)
		out = append(out, text[(shift*8+5)/6:(shift+8)*8/6])
	}
	return out
}
