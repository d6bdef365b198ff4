package api_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/golden"
)

// bodies are all bodies of the socket API.
var bodies = []any{
	api.Agent{}, api.Members{}, api.Elections{}, api.Change{}, api.TransferRequest{}, api.ResignRequest{}, api.DrainRequest{}, api.Outcome{}, api.Reload{}, api.Error{},
	api.CampaignRequest{}, api.CampaignEvent{}, api.StoppedRequest{}, api.ResumeRequest{}, api.Campaigns{}, api.History{}, api.Agents{},
	api.Keys{}, api.KeysRequest{}, api.Voters{}, api.VotersRequest{},
	api.Settings{}, api.SettingsRequest{}, api.AllowRequest{},
	api.LogLevel{}, api.LogLevelRequest{},
	api.DrillRequest{}, api.Drills{},
	api.ElectionWord{}, api.WordRequest{}, api.VoterWords{}, api.Jobs{},
}

// Programs of all versions read and write these bodies: fields are added, and never
// renamed or removed. A field that may be missing is shown with a value and without.
func TestTheBodiesOfTheSocketAPIAreWhatTheyWere(t *testing.T) {
	var lines strings.Builder
	seen := map[string]bool{}
	for _, empty := range bodies {
		body := reflect.New(reflect.TypeOf(empty))
		count := 0
		fill(t, body.Elem(), "", &count, seen)
		for _, v := range []any{empty, body.Interface()} {
			encoded, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&lines, "%s %s\n", body.Elem().Type().Name(), encoded)
		}
		again := reflect.New(reflect.TypeOf(empty))
		encoded, _ := json.Marshal(body.Interface())
		if err := json.Unmarshal(encoded, again.Interface()); err != nil || !reflect.DeepEqual(again.Interface(), body.Interface()) {
			t.Errorf("%T: read as %+v, %v", empty, again, err)
		}
	}
	golden.Check(t, "bodies.golden", lines.String())
	for _, name := range structs(t) {
		if !seen[name] {
			t.Errorf("no body has a %s", name)
		}
	}
}

// fill gives each field a different value.
func fill(t *testing.T, v reflect.Value, name string, count *int, seen map[string]bool) {
	*count++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000, int64(*count)).UTC()))
	case v.Kind() == reflect.String:
		v.SetString(strings.ToLower(name))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(*count))
	case v.CanUint():
		v.SetUint(uint64(*count))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name, count, seen)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name, count, seen)
	case v.Kind() == reflect.Map:
		of := reflect.New(v.Type().Elem()).Elem()
		fill(t, of, name, count, seen)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(strings.ToLower(name)), of)
	case v.Kind() == reflect.Struct:
		seen[v.Type().Name()] = true
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name, count, seen)
		}
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

// structs are the names of the package's structs.
func structs(t *testing.T) (names []string) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, ok := spec.Type.(*ast.StructType); ok {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}
