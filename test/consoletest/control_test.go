package consoletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// control is what a person finds on a page: by what it is and by its name, as a screen
// reader says them.
type control struct {
	*page
	what string
	node cdp.BackendNodeID
}

// find waits for the first thing of a role whose name a pattern matches as a whole.
func (p *page) find(role, name string) control {
	p.Helper()
	var all []control
	p.eventually(fmt.Sprintf("there is a %s %q", role, name), func() (err error) {
		if all, err = p.all(role, name); err == nil && len(all) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return all[0]
}

// all are the things of a role whose names a pattern matches as a whole.
func (p *page) all(role, name string) (all []control, err error) {
	r, err := regexp.Compile("^(?:" + name + ")$")
	if err != nil {
		return nil, err
	}
	document, err := command(p, runtime.Evaluate, runtime.EvaluateParams{Expression: "document", ObjectGroup: "all"})
	if err != nil {
		return nil, err
	}
	defer p.release("all")
	found, err := command(p, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: document.Result.ObjectID, Role: role})
	if err != nil {
		return nil, err
	}
	for _, n := range found.Nodes {
		called := ""
		if n.Name != nil {
			_ = json.Unmarshal(n.Name.Value, &called) // nothing where it is no string
		}
		if called = strings.Join(strings.Fields(called), " "); !n.Ignored && r.MatchString(called) {
			all = append(all, control{p, role + " " + called, n.BackendDOMNodeID})
		}
	}
	return all, nil
}

// release forgets the objects of a group.
func (p *page) release(group string) {
	_, _ = command(p, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group}) // a page that is gone has none
}

// call calls a function of JavaScript on the element.
func (c control) call(function string, to any, args ...any) error {
	object, err := command(c.page, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: c.node, ObjectGroup: "call"})
	if err != nil {
		return err
	}
	defer c.release("call")
	var with []*runtime.CallArgument
	for _, a := range args {
		value, err := json.Marshal(a)
		if err != nil {
			return err
		}
		with = append(with, &runtime.CallArgument{Value: value})
	}
	yes := true
	got, err := command(c.page, runtime.CallFunctionOn, runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: object.Object.ObjectID, Arguments: with, ReturnByValue: &yes, AwaitPromise: &yes})
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return errors.New(thrown(got.ExceptionDetails))
	case to == nil:
		return nil
	}
	return json.Unmarshal(got.Result.Value, to)
}

// point is the middle of the element in the window, once it is in view.
func (c control) point() (x, y float64, err error) {
	if _, err := command(c.page, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: c.node}); err != nil {
		return 0, 0, err
	}
	got, err := command(c.page, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: c.node})
	if err != nil {
		return 0, 0, err
	}
	for _, q := range got.Quads {
		left, right := min(q[0], q[2], q[4], q[6]), max(q[0], q[2], q[4], q[6])
		top, bottom := min(q[1], q[3], q[5], q[7]), max(q[1], q[3], q[5], q[7])
		if right-left >= 1 && bottom-top >= 1 {
			return math.Round((left + right) / 2), math.Round((top + bottom) / 2), nil
		}
	}
	return 0, 0, errors.New("it has no size")
}

// click clicks on the element with the mouse, once nothing covers it and it is enabled.
func (c control) click() {
	c.Helper()
	c.eventually("a click on "+c.what, func() error {
		x, y, err := c.point()
		if err != nil {
			return err
		}
		var covered string
		err = c.call(`function(x, y) {
			if (this.disabled || this.getAttribute('aria-disabled') === 'true') return 'it is disabled';
			const there = document.elementFromPoint(x, y);
			if (there && (this === there || this.contains(there) || (this.labels && [...this.labels].some(l => l.contains(there))))) return '';
			return 'covered by ' + (there ? there.outerHTML.slice(0, 100) : 'nothing');
		}`, &covered, x, y)
		if err != nil {
			return err
		}
		if covered != "" {
			return errors.New(covered)
		}
		return c.do(chromedp.MouseClickXY(x, y))
	})
	c.steps++
}

// fill types a text into a field, in place of what is there.
func (c control) fill(text string) {
	c.Helper()
	if err := c.call(`function() { this.focus(); this.select && this.select(); }`, nil); err != nil {
		c.Fatalf("%s: %v", c.what, err)
	}
	must(c.page, input.InsertText, input.InsertTextParams{Text: text})
	c.steps++
}

// choose chooses the option of a list whose text a pattern matches as a whole.
func (c control) choose(option string) {
	c.Helper()
	var chosen bool
	err := c.call(`function(pattern) {
		const one = [...this.options].find(o => new RegExp('^(?:' + pattern + ')$').test(o.textContent.trim()));
		if (!one) return false;
		this.focus();
		this.value = one.value;
		this.dispatchEvent(new Event('input', {bubbles: true}));
		this.dispatchEvent(new Event('change', {bubbles: true}));
		return true;
	}`, &chosen, option)
	if err != nil || !chosen {
		c.Fatalf("%s: option %q: %v", c.what, option, err)
	}
	c.steps++
}

// press presses a key of package kb.
func (p *page) press(key string) {
	p.Helper()
	if err := p.do(chromedp.KeyEvent(key)); err != nil {
		p.Fatalf("press %q: %v", key, err)
	}
	p.steps++
}
