package past

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// cablesMost is how many cables have a place: twice those of 40,960 hosts. Of more, nothing is kept.
	cablesMost = 1 << 18
	// cablesSpare is how much longer than Age a cable keeps its place.
	cablesSpare = 2 * 24 * time.Hour
	cableSize   = 22 // bytes of a cable in the file: two GUIDs, two ports and a day
	day         = 24 * time.Hour
)

// cables are those that have a place.
type cables struct {
	list  []views.Cable
	seen  []uint32 // by place: on which day last, since 1970
	place map[views.Cable]int
	free  int // no place before is free
}

func (k *Keeper) cablesFile() string { return filepath.Join(k.dir, "cables") }

// enter is the load of cables by their places; fresh says that the list is another than before.
func (c *cables) enter(shares []views.CableShare, now time.Time) (load []byte, fresh bool) {
	today := uint32(now.Unix() / int64(day/time.Second))
	c.free = 0
	load = make([]byte, len(c.list))
	for _, s := range shares {
		i, known := c.place[s.Cable]
		if !known {
			if i = c.room(today); i == cablesMost {
				continue
			}
			c.put(i, s.Cable)
			load = append(load, make([]byte, len(c.list)-len(load))...)
		}
		fresh = fresh || !known || c.seen[i] != today
		load[i], c.seen[i] = stepOf(s.Percent), today
	}
	return load, fresh
}

// room is a place for a cable that has none: that of one that was not seen for long, or a new one.
func (c *cables) room(today uint32) int {
	for ; c.free < len(c.list); c.free++ {
		if int64(today)-int64(c.seen[c.free]) > int64((Age+cablesSpare)/day) {
			return c.free
		}
	}
	return len(c.list)
}

func (c *cables) put(i int, cable views.Cable) {
	if c.place == nil {
		c.place = map[views.Cable]int{}
	}
	if i == len(c.list) {
		c.list, c.seen = append(c.list, cable), append(c.seen, 0)
	} else {
		delete(c.place, c.list[i])
		c.list[i] = cable
	}
	c.place[cable] = i
}

// shares is what cables carry, of which the load is known.
func (c *cables) shares(load []byte) []views.CableShare {
	out := make([]views.CableShare, 0, len(load))
	for i, step := range load {
		if step > 0 && int(step) <= len(steps) && i < len(c.list) {
			out = append(out, views.CableShare{Cable: c.list[i], Percent: steps[step-1]})
		}
	}
	return out
}

// write replaces the file, which ends with a checksum.
func (c *cables) write(path string) error {
	b := make([]byte, 0, len(c.list)*cableSize+crc32.Size)
	for i, x := range c.list {
		b = binary.BigEndian.AppendUint64(b, uint64(x.A.Node))
		b = append(b, byte(x.A.Port))
		b = binary.BigEndian.AppendUint64(b, uint64(x.B.Node))
		b = append(b, byte(x.B.Port))
		b = binary.BigEndian.AppendUint32(b, c.seen[i])
	}
	return files.Replace(path, files.Bytes(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))))
}

// read reads the file; there is none at first.
func (c *cables) read(path string) error {
	data, err := files.Read(path, cablesMost*cableSize+crc32.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n := len(data) - crc32.Size
	if n < 0 || n%cableSize != 0 || crc32.ChecksumIEEE(data[:n]) != binary.BigEndian.Uint32(data[n:]) {
		return fmt.Errorf("%s is damaged", path)
	}
	for b := bytes.NewBuffer(data[:n]); b.Len() > 0; {
		x := b.Next(cableSize)
		end := func(x []byte) observed.Place {
			return observed.Place{Node: ib.NodeGUID(binary.BigEndian.Uint64(x)), Port: ib.PortNum(x[8])}
		}
		c.put(len(c.list), views.Cable{A: end(x), B: end(x[9:])})
		c.seen[len(c.seen)-1] = binary.BigEndian.Uint32(x[18:])
	}
	return nil
}
