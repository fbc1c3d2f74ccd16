// Command verbs-ud sends a datagram from one host of a simulated fabric to another.
//
//	ibwarden sim --verbs &                                         a fabric
//	ibwarden run --fabric ibsim:sim --policy examples/verbs-ud/policy.yaml &   its manager
//	go run ./examples/verbs-ud red-2                               receives, prints its address
//	go run ./examples/verbs-ud red-1 LID QP                        sends to that address
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/verbs"
)

const qkey = 0x1234

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) != 1 && len(args) != 3 {
		return fmt.Errorf("usage: verbs-ud HOST [LID QP]")
	}
	d, err := verbs.Dial("", args[0])
	if err != nil {
		return err
	}
	defer d.Close()
	port, err := d.QueryPort(1)
	if err != nil {
		return err
	}
	if port.State != smp.PortActive {
		return fmt.Errorf("the port of %s is %v: no subnet manager has brought it up (ibwarden run)", args[0], port.State)
	}
	cq, err := d.CreateCQ(16)
	if err != nil {
		return err
	}
	qp, err := d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: cq, ReceiveCQ: cq})
	if err != nil {
		return err
	}
	// The first key of the port's table will do: it is that of the host's tenant.
	for _, to := range []struct {
		state verbs.QPState
		mask  verbs.QPAttrMask
	}{{verbs.StateInit, verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrQKey}, {verbs.StateRTR, 0}, {verbs.StateRTS, verbs.AttrSQPSN}} {
		if err := qp.Modify(verbs.QPAttr{State: to.state, Port: 1, QKey: qkey}, to.mask|verbs.AttrState); err != nil {
			return err
		}
	}
	if len(args) == 1 {
		if err := qp.PostReceive(1, 256); err != nil {
			return err
		}
		fmt.Println(port.LID, qp.Number())
		return receive(qp, cq)
	}
	return send(d, qp, cq, args[1], args[2])
}

func receive(qp *verbs.QP, cq *verbs.CQ) error {
	wcs, err := cq.Wait(1, time.Minute)
	for _, wc := range wcs {
		fmt.Printf("%v: %q from QP %d at LID %v, P_Key %v\n", wc.Status, wc.Data, wc.SrcQP, wc.SLID, wc.PKey)
	}
	return err
}

func send(d *verbs.Device, qp *verbs.QP, cq *verbs.CQ, lid, number string) error {
	dlid, err := ib.ParseLID(lid)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(number, 0, 24)
	if err != nil {
		return err
	}
	to, err := d.CreateAH(verbs.AHAttr{Port: 1, DLID: dlid})
	if err != nil {
		return err
	}
	if err := qp.PostSend(verbs.SendWR{ID: 1, Data: []byte("hello"), AH: to, RemoteQPN: ib.QPN(n), RemoteQKey: qkey}); err != nil {
		return err
	}
	wcs, err := cq.Wait(1, time.Minute)
	for _, wc := range wcs {
		fmt.Println("sent:", wc.Status)
	}
	return err
}
