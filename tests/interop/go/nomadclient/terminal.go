package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/plugins/drivers"
	"github.com/hashicorp/nomad/plugins/drivers/proto"
)

// person types a line, waits until the answer to it is seen, and types the next one. In between it gives a sign of life, as
// `nomad alloc exec` does each ten seconds.
type person struct {
	said chan *drivers.ExecTaskStreamingRequestMsg
	lock sync.Mutex
	seen strings.Builder
	code int32
	done bool
}

func (p *person) sees(text string) error {
	for began := time.Now(); time.Since(began) < timeout; time.Sleep(5 * time.Millisecond) {
		p.lock.Lock()
		seen := p.seen.String()
		p.lock.Unlock()
		if strings.Contains(seen, text) {
			return nil
		}
	}
	return fmt.Errorf("%q is never seen", text)
}

func (p *person) Recv() (*drivers.ExecTaskStreamingRequestMsg, error) {
	request, isOpen := <-p.said
	if !isOpen {
		return nil, io.EOF
	}
	return request, nil
}

func (p *person) Send(response *drivers.ExecTaskStreamingResponseMsg) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if response.Stdout != nil {
		p.seen.Write(response.Stdout.Data)
	}
	if response.Exited {
		p.done, p.code = true, response.Result.GetExitCode()
	}
	return nil
}

// terminal runs a command at a terminal of 33 lines and 101 columns, after the first line of 44 and 122, and types what is to be
// typed: each line, and behind it what is to be seen before the next.
func (c *client) terminal(wanted order) (told, error) {
	raw, isRaw := c.driver.DriverPlugin.(drivers.ExecTaskStreamingRawDriver)
	if !isRaw {
		return told{}, errors.New("the driver streams nothing")
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	someone := &person{said: make(chan *drivers.ExecTaskStreamingRequestMsg, 100)}
	size := func(height, width int32) *drivers.ExecTaskStreamingRequestMsg {
		return &drivers.ExecTaskStreamingRequestMsg{TtySize: &proto.ExecTaskStreamingRequest_TerminalSize{Height: height, Width: width}}
	}
	someone.said <- size(33, 101)
	go func() {
		for number := 0; number+1 < len(wanted.Typed); number += 2 {
			someone.said <- &drivers.ExecTaskStreamingRequestMsg{}
			someone.said <- &drivers.ExecTaskStreamingRequestMsg{
				Stdin: &proto.ExecTaskStreamingIOOperation{Data: []byte(wanted.Typed[number])},
			}
			if err := someone.sees(wanted.Typed[number+1]); err != nil {
				cancel()
				return
			}
			// Not behind the last line: what is sent to a command that has ended is an error of the packages.
			if number == 0 {
				someone.said <- size(44, 122)
			}
		}
	}()
	if err := raw.ExecTaskStreamingRaw(ctx, wanted.ID, wanted.Command, true, someone); err != nil {
		return told{}, fmt.Errorf("%w after %q", err, someone.seen.String())
	}
	if !someone.done {
		return told{}, fmt.Errorf("no end was told after %q", someone.seen.String())
	}
	return told{Text: someone.seen.String(), Code: int(someone.code)}, nil
}
