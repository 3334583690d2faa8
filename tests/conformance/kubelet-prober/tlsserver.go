package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"time"
)

// anything stands for no restriction.
const anything = "any"

var curves = map[string]tls.CurveID{"P-256": tls.CurveP256, "P-521": tls.CurveP521, "X25519": tls.X25519}

// serveTLS answers every request at an address with 200, over TLS that is restricted: arguments are the
// address, the highest version (1.2 or 1.3), a cipher suite of TLS 1.2, a curve, and the kind of the key.
func serveTLS(arguments []string) error {
	if len(arguments) != 5 {
		return fmt.Errorf("tls-server: got %q, want ADDRESS VERSION SUITE CURVE KEY", arguments)
	}
	address, version, suite, curve, key := arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]
	certificate, err := selfSigned(key)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if version == "1.2" {
		config.MaxVersion = tls.VersionTLS12
	}
	for _, known := range tls.CipherSuites() {
		if known.Name == suite {
			config.CipherSuites = []uint16{known.ID}
		}
	}
	if suite != anything && config.CipherSuites == nil {
		return fmt.Errorf("tls-server: no suite %q", suite)
	}
	if curve != anything {
		id, known := curves[curve]
		if !known {
			return fmt.Errorf("tls-server: no curve %q", curve)
		}
		config.CurvePreferences = []tls.CurveID{id}
	}
	server := &http.Server{
		Addr:              address,
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		TLSConfig:         config,
		ReadHeaderTimeout: time.Minute,
		// HTTP/2 requires suites that a restriction may leave out.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	fmt.Fprintln(os.Stdout, "serving", address)
	return server.ListenAndServeTLS("", "")
}

func selfSigned(kind string) (tls.Certificate, error) {
	key, err := newKey(kind)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "RSA":
		return rsa.GenerateKey(rand.Reader, 2048)
	case "P-256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "P-521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "Ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("tls-server: no kind of key %q", kind)
}
