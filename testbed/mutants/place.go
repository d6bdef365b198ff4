package mutants

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// span is a part of a file, in bytes.
type span struct{ from, to int }

func (s span) replace(file []byte, e Edit) []byte {
	text := strings.TrimSuffix(e.New, "\n")
	if e.Old == "" {
		text = "\n" + e.New
	}
	return slices.Concat(file[:s.from], []byte(text), file[s.to:])
}

// find returns the places in a file that the edit means.
func (e Edit) find(file []byte) ([]span, error) {
	if !bytes.Contains(file, []byte(e.Within[strings.LastIndexByte(e.Within, '.')+1:])) {
		return nil, nil // without the time that parsing takes
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "", file, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []span
	old := words([]byte(e.Old))
	for _, d := range declarations(parsed, e.Within) {
		if f, ok := d.(*ast.FuncDecl); ok && len(old) == 0 {
			start := fset.Position(f.Body.Lbrace).Offset + 1
			found = append(found, span{start, start})
			continue
		}
		start := fset.Position(d.Pos()).Offset
		in := words(file[start:fset.Position(d.End()).Offset])
		for i := range in {
			if len(old) > 0 && i+len(old) <= len(in) && slices.EqualFunc(in[i:i+len(old)], old, word.same) {
				found = append(found, span{start + in[i].from, start + in[i+len(old)-1].to})
			}
		}
	}
	return found, nil
}

// declarations returns what a file declares by a name.
func declarations(file *ast.File, name string) (found []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		declared := ""
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared = n.Name.Name
			if n.Recv != nil {
				of, _, _ := strings.Cut(types.ExprString(n.Recv.List[0].Type), "[")
				declared = strings.TrimPrefix(of, "*") + "." + declared
			}
		case *ast.TypeSpec:
			declared = n.Name.Name
		case *ast.ValueSpec:
			declared = n.Names[0].Name
		case *ast.ImportSpec:
			declared = "import"
		case *ast.File, *ast.GenDecl:
			return true
		}
		if declared == name {
			found = append(found, n)
		}
		return false
	})
	return found
}

// word is a token of Go. Comments are not among them, nor is what only the layout asks for.
type word struct {
	text     string
	from, to int // in bytes
}

func (w word) same(other word) bool { return w.text == other.text }

func words(code []byte) (all []word) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(code))
	s.Init(file, code, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		last := len(all) - 1
		if closes := tok == token.EOF || tok == token.RPAREN || tok == token.RBRACE || tok == token.RBRACK; closes && last >= 0 &&
			(all[last].text == ";" || all[last].text == ",") {
			all = all[:last] // a line break before a bracket
		}
		if tok == token.EOF {
			return all
		}
		w := word{text: tok.String(), from: file.Offset(pos), to: file.Offset(pos)}
		if tok.IsLiteral() {
			w.text = lit
		}
		if tok != token.SEMICOLON { // which may be a line break
			w.to += len(w.text)
		}
		all = append(all, w)
	}
}
