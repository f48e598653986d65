package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/nomad/nomad/structs"
	"github.com/hashicorp/nomad/plugins/base"
	"github.com/hashicorp/nomad/plugins/drivers"
)

// timeout is far more than any call takes.
const timeout = 60 * time.Second

// driver is a process of the driver, dispensed.
type driver struct {
	drivers.DriverPlugin
	process *plugin.Client
	base    base.BasePlugin
	pid     int
}

// client is what a Nomad client is of one driver.
type client struct {
	directory string
	command   []string
	driver    *driver
	// The handles as they are in memory, with the configuration of the driver if this client has started the task.
	handles map[string]*drivers.TaskHandle
	silence context.CancelFunc
}

// reattach is how to join a process again, as a client stores it: the version of the protocol is not in it.
type reattach struct {
	Protocol string
	Network  string
	Address  string
	Pid      int
}

func (c *client) path(parts ...string) string {
	return filepath.Join(append([]string{c.directory}, parts...)...)
}

func begin(directory string, command []string) (*client, error) {
	c := &client{directory: directory, command: command, handles: map[string]*drivers.TaskHandle{}}
	if err := os.MkdirAll(c.path("handles"), 0o700); err != nil {
		return nil, err
	}
	if err := c.ask(); err != nil {
		return nil, fmt.Errorf("the driver cannot be asked who it is: %w", err)
	}
	if err := c.dispense(); err != nil {
		return nil, err
	}
	if err := c.restore(); err != nil {
		return nil, err
	}
	return c, nil
}

// ask does what the loader of plugins does: a process for the questions, and another one that checks the configuration.
func (c *client) ask() error {
	for _, name := range []string{"info", "configuration"} {
		asked, err := c.launch()
		if err != nil {
			return err
		}
		if name == "info" {
			_, err = asked.base.PluginInfo()
			if _, schemaErr := asked.base.ConfigSchema(); err == nil {
				err = schemaErr
			}
		} else {
			err = asked.base.SetConfig(&base.Config{ApiVersion: drivers.ApiVersion010})
		}
		asked.process.Kill()
		if err != nil {
			return err
		}
	}
	return nil
}

func connect(config *plugin.ClientConfig) (*driver, error) {
	logger := hclog.New(&hclog.LoggerOptions{Name: "client", Level: hclog.Trace, Output: os.Stderr})
	config.HandshakeConfig = base.Handshake
	config.Plugins = map[string]plugin.Plugin{
		base.PluginTypeBase:   &base.PluginBase{},
		base.PluginTypeDriver: drivers.NewDriverPlugin(nil, logger),
	}
	config.AllowedProtocols = []plugin.Protocol{plugin.ProtocolGRPC}
	config.Logger = logger
	process := plugin.NewClient(config)
	protocol, err := process.Client()
	if err != nil {
		if config.Reattach == nil {
			process.Kill()
		}
		return nil, err
	}
	asBase, err := protocol.Dispense(base.PluginTypeBase)
	if err != nil {
		return nil, err
	}
	asDriver, err := protocol.Dispense(base.PluginTypeDriver)
	if err != nil {
		return nil, err
	}
	return &driver{
		DriverPlugin: asDriver.(drivers.DriverPlugin), process: process, base: asBase.(base.BasePlugin),
		pid: process.ReattachConfig().Pid,
	}, nil
}

func (c *client) launch() (*driver, error) {
	return connect(&plugin.ClientConfig{Cmd: exec.Command(c.command[0], c.command[1:]...)})
}

// dispense joins the driver's process if there is one, without another configuration, and launches one if not.
func (c *client) dispense() error {
	if joined, err := c.join(); err == nil {
		c.driver = joined
		tell(told{Told: "joined", Pid: joined.pid})
		return c.listen()
	} else if !errors.Is(err, os.ErrNotExist) {
		tell(told{Told: "not joined", Error: err.Error()})
	}
	launched, err := c.launch()
	if err != nil {
		return err
	}
	config := &base.Config{ApiVersion: drivers.ApiVersion010, AgentConfig: &base.AgentConfig{
		Driver: &base.ClientDriverConfig{ClientMinPort: 14000, ClientMaxPort: 14512},
	}}
	if err := launched.base.SetConfig(config); err != nil {
		launched.process.Kill()
		return err
	}
	record := launched.process.ReattachConfig()
	stored := reattach{string(record.Protocol), record.Addr.Network(), record.Addr.String(), record.Pid}
	text, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("driver"), text, 0o600); err != nil {
		return err
	}
	c.driver = launched
	tell(told{Told: "launched", Pid: launched.pid})
	return c.listen()
}

func (c *client) join() (*driver, error) {
	text, err := os.ReadFile(c.path("driver"))
	if err != nil {
		return nil, err
	}
	var stored reattach
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	return connect(&plugin.ClientConfig{Reattach: &plugin.ReattachConfig{
		Protocol: plugin.Protocol(stored.Protocol), Pid: stored.Pid,
		Addr: &net.UnixAddr{Net: stored.Network, Name: stored.Address},
	}})
}

// listen tells every event from now on.
func (c *client) listen() error {
	ctx, cancel := context.WithCancel(context.Background())
	events, err := c.driver.TaskEvents(ctx)
	if err != nil {
		cancel()
		return err
	}
	c.silence = cancel
	go func() {
		for event := range events {
			if event.Err != nil {
				return
			}
			tell(told{Told: "event", ID: event.TaskID, Text: event.Message, Extra: event.Annotations})
		}
	}()
	return nil
}

// restore recovers every task whose handle is stored. One that cannot be recovered is destroyed by force, as by a client.
func (c *client) restore() error {
	files, err := filepath.Glob(c.path("handles", "*"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		handle := &drivers.TaskHandle{}
		if err := structs.Decode(text[1:], handle); err != nil {
			return err
		}
		c.recover(handle)
	}
	return nil
}

func (c *client) recover(handle *drivers.TaskHandle) {
	recovered := told{Told: "recovered", ID: handle.Config.ID}
	if err := c.driver.RecoverTask(handle); err != nil {
		recovered.Error = err.Error()
		if err := c.driver.DestroyTask(handle.Config.ID, true); err != nil && !errors.Is(err, drivers.ErrTaskNotFound) {
			recovered.Error += "; and it cannot be destroyed: " + err.Error()
		}
	} else {
		c.handles[handle.Config.ID] = handle
	}
	tell(recovered)
}

// store keeps a handle as a client does: the configuration of the driver is a private field, and gets lost.
func (c *client) store(handle *drivers.TaskHandle) error {
	text, err := structs.Encode(0, handle)
	if err != nil {
		return err
	}
	c.handles[handle.Config.ID] = handle
	return os.WriteFile(c.stored(handle.Config.ID), text, 0o600)
}

func (c *client) stored(id string) string {
	return c.path("handles", filepath.Base(id))
}

// revive brings the driver again whose process has died, with the handles as they are in memory.
func (c *client) revive() error {
	for began := time.Now(); !c.driver.process.Exited(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > timeout {
			return errors.New("the driver's process goes on")
		}
	}
	c.silence()
	if err := os.Remove(c.path("driver")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := c.dispense(); err != nil {
		return err
	}
	for _, handle := range c.handles {
		c.recover(handle)
	}
	return nil
}

// end stops in order.
func (c *client) end() {
	c.silence()
	c.driver.process.Kill()
	os.Remove(c.path("driver"))
}
