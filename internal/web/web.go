// Package web serves the console, the pages that a browser shows of the service: files that
// are part of the program, for which nothing else is fetched. All that they show and change
// goes through the API, with a session that the page asks for (package api).
//
// The pages are ES modules as they stand in assets: what is read there is what runs.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// Prefix begins the path of every file of the console.
const Prefix = "/console/"

// policy lets the page load nothing but its own files, and ask nobody but the service that
// served it. No text becomes markup or a script (Trusted Types), no other page holds it in
// a frame, and no form is sent.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed assets
var embedded embed.FS

// file is a file of the console as it is sent.
type file struct {
	kind         string // Content-Type
	etag         string
	plain, small []byte // as it is, and as gzip
}

// Handler serves the console at Prefix, leads GET / to it, and leaves all else to rest. provider is
// what the login page calls the OpenID provider that rest leads browsers to; "" for none.
func Handler(provider string, rest http.Handler) http.Handler {
	// They are compressed when the first of them is asked for.
	files := sync.OnceValue(func() map[string]*file {
		loaded, err := load(embedded, provider)
		if err != nil {
			panic(err) // the files are part of the program: a test has read them
		}
		return loaded
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.EscapedPath()
		switch {
		case at == "/" || at+"/" == Prefix:
			if read(w, r) {
				http.Redirect(w, r, Prefix, http.StatusSeeOther)
			}
		case strings.HasPrefix(at, Prefix):
			if read(w, r) {
				serve(w, r, files()[strings.TrimPrefix(at, Prefix)])
			}
		default:
			rest.ServeHTTP(w, r)
		}
	})
}

// read refuses what is no reading, and sets what all answers have.
func read(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-cache") // asked for by ETag each time
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	h.Set("Allow", "GET, HEAD")
	http.Error(w, "the console is read with GET", http.StatusMethodNotAllowed)
	return false
}

func serve(w http.ResponseWriter, r *http.Request, f *file) {
	if f == nil {
		http.Error(w, "the console has no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if slices.Contains(strings.Split(strings.ReplaceAll(r.Header.Get("If-None-Match"), " ", ""), ","), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := f.plain
	if f.small != nil && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		content = f.small
	}
	h.Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(content) // the client may be gone
	}
}

func takesGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if name, weight, _ := strings.Cut(strings.TrimSpace(part), ";"); name == "gzip" && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}

// page is the file that is served at Prefix itself. modules stands in it where the browser is
// told of all modules, which it would otherwise find one after the other.
const (
	page    = "index.html"
	modules = "<!-- modules -->"
	// noProvider stands in it where the provider is, if there is one.
	noProvider = `<meta name="openid-provider" content="">`
)

// load reads the files; "" is the page itself.
func load(from fs.FS, provider string) (map[string]*file, error) {
	files := map[string]*file{}
	var preload strings.Builder
	err := fs.WalkDir(from, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		kind := kinds[path.Ext(name)]
		if kind == "" {
			return fmt.Errorf("%s: want one of %v", name, kinds)
		}
		name = strings.TrimPrefix(name, "assets/")
		if path.Ext(name) == ".js" {
			fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s\">\n", name)
		}
		files[name] = packed(kind, content)
		return nil
	})
	if err == nil && files[page] == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	text := bytes.Replace(files[page].plain, []byte(modules), []byte(preload.String()), 1)
	text = bytes.Replace(text, []byte(noProvider), []byte(strings.Replace(noProvider, `""`, `"`+html.EscapeString(provider)+`"`, 1)), 1)
	files[page] = packed(files[page].kind, text)
	files[""] = files[page]
	return files, nil
}

// packed is a file with its ETag, and as gzip where that is shorter.
func packed(kind string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{kind: kind, plain: content, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
	var small bytes.Buffer
	z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression)
	_, _ = z.Write(content) // into memory
	_ = z.Close()
	if small.Len() < len(content) {
		f.small = small.Bytes()
	}
	return f
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}
