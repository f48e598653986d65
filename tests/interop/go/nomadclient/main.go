// Command nomadclient does with a task driver what the client of a Nomad agent does with it, on the official Go packages, and
// takes its orders as lines of JSON on standard input:
//
//	nomadclient DIRECTORY DRIVER ARGUMENT...
//
// In the directory it keeps what a client keeps: how to join the driver's process again (without the version of its protocol),
// and the handle of each task, stored through msgpack, which leaves the configuration of the driver out. When it begins, it
// asks the driver who it is in a process of its own, joins the process that an earlier client left or launches one, listens to
// its events, and recovers every task. It tells each thing that it did, and each event, as one line of JSON on standard output.
//
// The order "end" is an orderly stop: the driver's process ends and the record of it is forgotten, the tasks go on. So is the end
// of standard input. A client that is killed leaves everything behind.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// order is what is to be done.
type order struct {
	Do        string   `json:"do"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Script    string   `json:"script"`
	User      string   `json:"user"`
	Signal    string   `json:"signal"`
	TimeoutMS int64    `json:"timeout_ms"`
	Force     bool     `json:"force"`
	Command   []string `json:"command"`
	Typed     []string `json:"typed"`
	Cgroup    string   `json:"cgroup"`
	MemoryMB  int64    `json:"memory_mb"`
}

// told is what was done or has happened.
type told struct {
	// What this is about: "joined", "launched", "recovered", "event", or "done" for an order.
	Told   string            `json:"told"`
	ID     string            `json:"id,omitempty"`
	Pid    int               `json:"pid,omitempty"`
	Error  string            `json:"error,omitempty"`
	Text   string            `json:"text,omitempty"`
	Code   int               `json:"code"`
	Signal int               `json:"signal"`
	OOM    bool              `json:"oom"`
	Memory uint64            `json:"memory"`
	Extra  map[string]string `json:"extra,omitempty"`
}

var telling sync.Mutex

func tell(what told) {
	telling.Lock()
	defer telling.Unlock()
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: nomadclient DIRECTORY DRIVER ARGUMENT...")
		os.Exit(2)
	}
	client, err := begin(os.Args[1], os.Args[2:])
	if err != nil {
		tell(told{Told: "failed", Error: err.Error()})
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var wanted order
		if err := json.Unmarshal(lines.Bytes(), &wanted); err != nil {
			fmt.Fprintln(os.Stderr, "no order:", err)
			os.Exit(2)
		}
		if wanted.Do == "end" {
			break
		}
		done, err := client.obey(wanted)
		done.Told, done.ID = "done", wanted.ID
		if err != nil {
			done.Error = err.Error()
		}
		tell(done)
	}
	client.end()
	tell(told{Told: "ended"})
}
