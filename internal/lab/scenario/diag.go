package scenario

import (
	"reflect"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

func compileDiag(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	n, err := a.Number("DiagCode", 16)
	return func(w *world) error {
		return w.Fabric.SetDiagCode(p.Node.GUID, p.Exact().Port, smp.DiagCode(n))
	}, err
}

func compileVendorDiag(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	index, err := a.Number("index of VendorDiag", 16)
	if err != nil {
		return nil, err
	}
	t := OperandTarget{OperandPlace: p}
	if t.AttributeKind, err = a.Kind(testbed.ScriptWord{}, "VendorDiag"); err != nil {
		return nil, err
	}
	var fields []Assignment
	for a.More() {
		f, err := a.Assignment(&t, false)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil, a.Fault(testbed.ScriptWord{}, "want NextIndex=NUMBER, DiagData=BYTES or both: the content of the block")
	}
	return func(w *world) error {
		var block smp.VendorDiag
		for _, f := range fields {
			at, err := AttributeField(reflect.ValueOf(&block).Elem(), f.Field)
			if err != nil {
				return err
			}
			f.Store(w.Testbed, at)
		}
		return w.Fabric.SetVendorDiag(p.Node.GUID, p.Exact().Port, uint16(index), block)
	}, a.Fits(t, fields)
}
