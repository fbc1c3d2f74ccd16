package qib

import "encoding/binary"

const configSize = 256

// Offsets in the PCI configuration space.
const (
	configCommand = 0x04
	configBAR0    = 0x10
	configMSI     = 0x50
	configMSIAddr = configMSI + 4
	configMSIData = configMSI + 12
	configPCIe    = 0x60

	commandMaster = 1 << 2
	msiEnable     = 1 << 16
)

// configSpace is the PCI configuration space: its bytes, and which of their bits may be
// written.
type configSpace struct {
	bytes, writable [configSize]byte
}

func newConfigSpace() (c configSpace) {
	for at, v := range map[int]uint32{
		0x00: 0x0010_1fc1, configCommand: 0x0010_0000, 0x08: 0x0c06_0002,
		0x2c: 0x0010_1fc1, 0x34: configMSI, 0x3c: 0x0100,
		configMSI:  0x0080_6005, // 64-bit addresses, one vector; the next capability
		configPCIe: 0x0001_0010, // version 1, an endpoint
		// The width of the slot, 8 lanes of the first speed: without it the driver warns.
		configPCIe + 0x0c: 0x81, configPCIe + 0x10: 0x0081_0000,
	} {
		binary.LittleEndian.PutUint32(c.bytes[at:], v)
	}
	for at, v := range map[int]uint32{
		configCommand: 0x0546, 0x0c: 0xffff, configBAR0: ^uint32(BARSize - 1), 0x3c: 0xff,
		configMSI: 0x71_0000, configMSIAddr: ^uint32(0), configMSIAddr + 4: ^uint32(0), configMSIData: 0xffff,
		configPCIe + 8: 0xffff,
	} {
		binary.LittleEndian.PutUint32(c.writable[at:], v)
	}
	return c
}

func (c *configSpace) word(at int) uint32 { return binary.LittleEndian.Uint32(c.bytes[at:]) }

// isMaster reports whether the adapter may use memory.
func (c *configSpace) isMaster() bool { return c.word(configCommand)&commandMaster != 0 }

// msi is where an interrupt is written to, and what; on reports whether it is enabled.
func (c *configSpace) msi() (address uint64, data uint32, on bool) {
	address = uint64(c.word(configMSIAddr+4))<<32 | uint64(c.word(configMSIAddr))
	return address, c.word(configMSIData) & 0xffff, c.word(configMSI)&msiEnable != 0 && c.isMaster()
}

// ReadConfig reads size bytes, at most 4, of the PCI configuration space.
func (a *Adapter) ReadConfig(offset uint32, size int) uint32 {
	var v uint32
	for i := range uint32(size) {
		if at := offset + i; at < configSize {
			v |= uint32(a.config.bytes[at]) << (8 * i)
		}
	}
	return v
}

// WriteConfig writes size bytes, at most 4, of the PCI configuration space. Bits that are
// only read stay as they are.
func (a *Adapter) WriteConfig(offset uint32, size int, v uint32) {
	for i := range uint32(size) {
		if at := offset + i; at < configSize {
			may := a.config.writable[at]
			a.config.bytes[at] = a.config.bytes[at]&^may | byte(v>>(8*i))&may
		}
	}
}

// BAR is the bus address of BAR 0, 0 while it has none.
func (a *Adapter) BAR() uint64 { return uint64(a.config.word(configBAR0)) }
