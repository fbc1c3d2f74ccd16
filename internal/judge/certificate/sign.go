package certificate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
)

// Namespaces are what signatures are for: ssh-keygen -Y verify -n has to name it. A tenant's certificate
// has another, so that it cannot be taken for one of the whole fabric.
const (
	Namespace       = "ibwarden-certificate"
	TenantNamespace = "ibwarden-tenant-certificate"
)

// signedBy is the kind of key, and hashed the digest that is signed.
const (
	signedBy = "ssh-ed25519"
	hashed   = "sha512"
)

// armorWidth is the length of the lines of a signature, in characters.
const armorWidth = 70

// Sign returns a signature of a file for a namespace, as ssh-keygen -Y sign writes it. The same file
// and key give the same signature.
func Sign(key ed25519.PrivateKey, namespace string, file []byte) []byte {
	sum := sha512.Sum512(file)
	signed := fields([]byte("SSHSIG"), []byte(namespace), nil, []byte(hashed), sum[:])
	signature := fields(nil, []byte(signedBy), ed25519.Sign(key, signed))
	head := binary.BigEndian.AppendUint32([]byte("SSHSIG"), 1) // the version
	blob := fields(head, publicBlob(key), []byte(namespace), nil, []byte(hashed), signature)
	var out bytes.Buffer
	out.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	text := base64.StdEncoding.EncodeToString(blob)
	for ; len(text) > armorWidth; text = text[armorWidth:] {
		out.WriteString(text[:armorWidth] + "\n")
	}
	out.WriteString(text + "\n-----END SSH SIGNATURE-----\n")
	return out.Bytes()
}

// AllowedSigner is the line of an allowed_signers file that lets ssh-keygen -Y verify, with
// -I ibwarden, accept the certificates that the key signs.
func AllowedSigner(key ed25519.PrivateKey) string {
	return `ibwarden namespaces="` + Namespace + "," + TenantNamespace + `" ` + signedBy + " " + base64.StdEncoding.EncodeToString(publicBlob(key))
}

// publicBlob is the public half of a key in SSH's form.
func publicBlob(key ed25519.PrivateKey) []byte {
	return fields(nil, []byte(signedBy), key.Public().(ed25519.PublicKey))
}

// fields appends strings to head in SSH's form, each after its length.
func fields(head []byte, list ...[]byte) []byte {
	out := bytes.Clone(head)
	for _, s := range list {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(s))), s...)
	}
	return out
}
