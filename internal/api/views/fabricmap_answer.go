package views

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// MapAnswer is a map as it is sent.
type MapAnswer struct {
	// Body is the map in JSON, Zipped the same by gzip.
	Body, Zipped []byte
	// ETag stands for all of it but when it was read, and at which revision.
	ETag string
}

// MapMaker makes maps, and keeps the last one of the provider. Its methods may be called in any
// goroutine.
type MapMaker struct {
	mu   sync.Mutex
	key  key
	last *MapAnswer
	// nodes, links and their layout are those of a snapshot and a list; place has the places
	// of devices among them.
	nodes  []node
	links  []mapLink
	layout observed.LevelLayout
	place  map[ib.NodeGUID]int
	// racks are the names of racks, and of which each device is in, by racked; none without a file.
	racks  []string
	racked []int32
	of     *snapshot.Snapshot
	list   *MapList
	by     *racks.File
	// differences are those of a snapshot and a list.
	differences []Difference
	compared    *snapshot.Snapshot
	comparedTo  *MapList
}

// key is what a map of the provider was made of. What one of them points to does not change.
type key struct {
	snapshot *snapshot.Snapshot
	proof    *isolation.Proof // the fences are of the same pass
	list     *MapList
	racks    *racks.File
	revision uint64
	old      string
}

func (f *MapFacts) key() key {
	return key{f.Snapshot, f.Proof, f.list(), f.Racks, f.revision, f.Old}
}

// Whole is the map for the provider.
func (m *MapMaker) Whole(f *MapFacts) (*MapAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && m.key == f.key() {
		return m.last, nil
	}
	a, err := answer(f, m.whole(f))
	if err != nil {
		return nil, err
	}
	m.key, m.last = f.key(), a
	return a, nil
}

// Own is the map for a tenant.
func (m *MapMaker) Own(f *MapFacts, tenant string) (*MapAnswer, error) {
	return answer(f, f.own(tenant))
}

// answer makes the bytes of a map.
func answer(f *MapFacts, c MapContent) (*MapAnswer, error) {
	content, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	head, err := json.Marshal(struct {
		Revision uint64    `json:"revision"`
		Old      string    `json:"old,omitempty"`
		ReadAt   time.Time `json:"read_at"`
	}{f.revision, f.Old, f.Snapshot.ReadAt})
	if err != nil {
		return nil, err
	}
	// One object of the fields of both.
	body := append(append(head[:len(head)-1:len(head)-1], ','), content[1:]...)
	zipped, err := zip(body)
	if err != nil {
		return nil, err
	}
	return &MapAnswer{body, zipped, `W/"` + hex.EncodeToString(sum[:16]) + `"`}, nil
}

// zipLevel takes a third of the time of the usual level, and makes maps 3 % larger.
const zipLevel = 4

func zip(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, zipLevel)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(body); err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}

// TakesGzip reports whether a client takes gzip, by its Accept-Encoding.
func TakesGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, rest, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight := strings.ReplaceAll(strings.ToLower(rest), " ", "")
			return weight != "q=0" && strings.Trim(weight, "0.") != "q="
		}
	}
	return false
}

// Has reports whether an If-None-Match names this answer.
func (a *MapAnswer) Has(ifNoneMatch string) bool {
	bare := strings.TrimPrefix(a.ETag, "W/")
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == bare {
			return true
		}
	}
	return false
}
