package verbsd

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// TestNames: what an end node says reaches a program under the name that the verbs
// have for it. States and statuses travel as numbers, which must be the same ones.
func TestNames(t *testing.T) {
	for status, want := range map[endpoint.Status]string{
		endpoint.Success: "IBV_WC_SUCCESS", endpoint.LocalLengthError: "IBV_WC_LOC_LEN_ERR", endpoint.Flushed: "IBV_WC_WR_FLUSH_ERR",
		endpoint.BadResponse: "IBV_WC_BAD_RESP_ERR", endpoint.RemoteInvalidRequest: "IBV_WC_REM_INV_REQ_ERR",
		endpoint.RemoteAccessError: "IBV_WC_REM_ACCESS_ERR", endpoint.RemoteOperationError: "IBV_WC_REM_OP_ERR",
		endpoint.RemoteInvalidRDRequest: "IBV_WC_REM_INV_RD_REQ_ERR", endpoint.RetryExceeded: "IBV_WC_RETRY_EXC_ERR",
		endpoint.RNRRetryExceeded: "IBV_WC_RNR_RETRY_EXC_ERR",
	} {
		if got := verbs.WCStatus(status).String(); got != want {
			t.Errorf("%v: %s, want %s", status, got, want)
		}
	}
	if next := endpoint.RNRRetryExceeded + 1; !strings.HasPrefix(next.String(), "unknown") || !strings.HasPrefix(verbs.WCStatus(next).String(), "unknown") {
		t.Errorf("status %d: %v and %v: it has a name, and no row here", next, next, verbs.WCStatus(next))
	}
	for state := endpoint.StateReset; state <= endpoint.StateErr; state++ {
		if got := verbs.QPState(state).String(); got != state.String() {
			t.Errorf("state %v: %s", state, got)
		}
	}
	for kind, want := range map[endpoint.EventKind]string{
		endpoint.EventPKeyChange: "IBV_EVENT_PKEY_CHANGE", endpoint.EventPortActive: "IBV_EVENT_PORT_ACTIVE",
		endpoint.EventPortError: "IBV_EVENT_PORT_ERR", endpoint.EventLIDChange: "IBV_EVENT_LID_CHANGE",
		endpoint.EventGIDChange: "IBV_EVENT_GID_CHANGE", endpoint.EventSMChange: "IBV_EVENT_SM_CHANGE",
		endpoint.EventClientReregister: "IBV_EVENT_CLIENT_REREGISTER", endpoint.EventQPRequestError: "IBV_EVENT_QP_REQ_ERR",
		endpoint.EventQPAccessError: "IBV_EVENT_QP_ACCESS_ERR",
	} {
		if got := eventTypes[kind].String(); got != want {
			t.Errorf("event %d: %s, want %s", kind, got, want)
		}
	}
	for kind := endpoint.EventPKeyChange; kind <= endpoint.EventQPAccessError; kind++ {
		if eventTypes[kind] == 0 {
			t.Errorf("event %d has no name", kind)
		}
	}
	for service, want := range map[verbs.QPType]string{
		verbs.QPTypeRC: "RC", verbs.QPTypeUC: "UC", verbs.QPTypeUD: "UD", verbs.QPTypeRD: "RD",
		verbs.QPTypeRawIPv6: "raw IPv6", verbs.QPTypeRawEtherType: "raw EtherType",
	} {
		if got := services[service].String(); got != want {
			t.Errorf("%v: %s, want %s", service, got, want)
		}
	}
	for _, op := range []struct {
		from endpoint.Operation
		want string
	}{
		{endpoint.OpSend, "IBV_WC_SEND"}, {endpoint.OpWrite, "IBV_WC_RDMA_WRITE"}, {endpoint.OpRead, "IBV_WC_RDMA_READ"},
		{endpoint.OpReceive, "IBV_WC_RECV"}, {endpoint.OpReceiveWrite, "IBV_WC_RECV_RDMA_WITH_IMM"},
	} {
		if got := opcodeOf(op.from).String(); got != op.want {
			t.Errorf("operation %d: %s, want %s", op.from, got, op.want)
		}
	}
	for _, err := range []error{
		endpoint.ErrPort, endpoint.ErrPKeyIndex, endpoint.ErrPKeyEmpty, endpoint.ErrPermission, endpoint.ErrService,
		endpoint.ErrState, endpoint.ErrAttribute, endpoint.ErrFull, endpoint.ErrRequest, endpoint.ErrDestroyed,
	} {
		var a verbs.Answer
		a.SetErr(told(err))
		if back := a.Err(); back == nil || a.Code == "request" && err != endpoint.ErrRequest || a.Text != err.Error() {
			t.Errorf("%v is told as %+v", err, a)
		}
	}
}
