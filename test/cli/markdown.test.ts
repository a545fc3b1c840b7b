// A model's Markdown on its way to a terminal: rows of text, at any width and cut anywhere.
import { beforeAll, describe, expect, it } from 'vitest'
import { stripVTControlCharacters } from 'node:util'
import { colourLine } from '../../src/cli/present/colour.ts'
import { textOfRuns } from '../../src/cli/present/flow.ts'
import { MarkdownStream, modelText } from '../../src/cli/present/markdown-stream.ts'
import { loadMarkdown } from '../../src/cli/present/markdown.ts'
import { widthOf } from '../../src/cli/present/terminal-text.ts'

beforeAll(loadMarkdown)

const PAGE = `# The plan
Intro with **bold**, *italic*, ~~gone~~, \`code\` and [a link](https://example.com/page).
A second line of the paragraph.

Heading by a line
=================

1. first
2. second, which is long enough to be broken on a narrow screen

   with a paragraph
   \`\`\`ts
   const a = 1
   \`\`\`
10. tenth
- [ ] open
- [x] done
  - nested
    - deeper

> a quote
goes on
>> in a quote

| name | amount |
|:-----|-------:|
| one | 1 |
| a cell that is far wider than a narrow screen, 日本語 and all | 20,000 |

---
\`\`\`ts
/* a comment
over lines */ const t = \`text
  \${x}\`


end()
\`\`\`
    indented code

<div>html &lt;is&gt; text</div>
[def]: https://example.com "no definition"
Last **unclosed and [def]`

const STYLE = { columns: 60, hasColours: false }

function inPieces(text: string, sizes: readonly number[], columns = 60): string {
  const style = { ...STYLE, columns }
  const stream = new MarkdownStream()
  const rows: string[] = []
  for (let at = 0, i = 0; at < text.length; i += 1) {
    const size = sizes[i % sizes.length] ?? 1
    stream.push(text.slice(at, at + size))
    const { finished, open } = stream.look(style)
    for (const row of [...finished, ...open]) expect(widthOf(row)).toBeLessThanOrEqual(columns)
    rows.push(...finished)
    at += size
  }
  return [...rows, ...stream.end(style)].join('\n')
}

describe('Markdown', () => {
  it('B-CLI-308: headings, lists, tables, quotes, links, rules and code are drawn as what they are', () => {
    expect(modelText(PAGE, STYLE)).toMatchInlineSnapshot(`
      "│ # The plan
      │ Intro with bold, italic, ~~gone~~, \`code\` and a link
      │ (https://example.com/page).
      │ A second line of the paragraph.
      │
      │ # Heading by a line
      │
      │ 1. first
      │ 2. second, which is long enough to be broken on a narrow
      │    screen
      │
      │    with a paragraph
      │      const a = 1
      │ 10. tenth
      │ • [ ] open
      │ • [x] done
      │   • nested
      │     • deeper
      │
      │ ┃ a quote
      │ ┃ goes on
      │ ┃ ┃ in a quote
      │
      │ name                                              │ amount
      │ ──────────────────────────────────────────────────┼───────
      │ one                                               │      1
      │ a cell that is far wider than a narrow screen, 日 │ 20,000
      │ 本語 and all                                      │
      │
      │ ──────────────────────────────────────────────────────────
      │   /* a comment
      │   over lines */ const t = \`text
      │     \${x}\`
      │
      │
      │   end()
      │   indented code
      │
      │ <div>html <is> text</div>
      │ [def]: https://example.com "no definition"
      │ Last **unclosed and [def]"
    `)
  })

  it('B-CLI-309: cut anywhere, it gives the same rows', () => {
    const whole = modelText(PAGE, STYLE)
    for (const size of [1, 7, 40]) expect(inPieces(PAGE, [size])).toBe(whole)
    for (let cut = 0; cut <= PAGE.length; cut += 11) expect(inPieces(PAGE, [cut || 1, PAGE.length])).toBe(whole)
  })

  it('B-CLI-309: parts in any order give the same rows however they are cut', () => {
    const parts = PAGE.split('\n')
    let seed = 7
    const random = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most
    for (let round = 0; round < 10; round += 1) {
      const lines = Array.from({ length: 12 }, () => `${' '.repeat(random(3))}${parts[random(parts.length)]}`)
      const text = lines.join('\n')
      const whole = modelText(text, STYLE)
      expect([text, inPieces(text, [1])]).toEqual([text, whole])
      expect([text, inPieces(text, [5, 1, 40])]).toEqual([text, whole])
    }
  })

  it('B-CLI-310: every row fits and has its margin, at any width, also of hostile text', () => {
    const evil = `${PAGE}\n\`\`\`\n${'x'.repeat(30_000)}\n\`\`\`\n${'> '.repeat(3_000)}deep\n${'*'.repeat(5_000)}a`
    const texts = [
      evil,
      '\u001b[2J\u001b]0;title\u0007',
      '? edit a.txt · +1 −1\n✓ bash rm\n› yes',
      '日本語'.repeat(100),
    ]
    for (const text of texts)
      for (const columns of [10, 24, 79, 200]) {
        const rows = modelText(text, { columns, hasColours: false }).split('\n')
        for (const row of rows) {
          expect(widthOf(row)).toBeLessThanOrEqual(columns)
          expect(row).toMatch(/^[│┆](?: |$)/u)
        }
        const coloured = modelText(text, { columns, hasColours: true }).split('\n')
        expect(coloured.map((row) => stripVTControlCharacters(row)[0]).join('')).toMatch(/^[│┆]+$/u)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of this program are the only sequences.
        expect(coloured.join('').replace(/\u001b\[(?:\d;?)*m/g, '')).not.toMatch(/\p{Cc}/u)
      }
  })

  it('B-CLI-311: a table that is wider than the screen wraps its cells', () => {
    const table = '| a | b |\n|---|---|\n| some words in a cell | more words in another cell |'
    expect(modelText(table, { columns: 28, hasColours: false }).split('\n')).toEqual([
      '│ a            │ b',
      '│ ─────────────┼────────────',
      '│ some words   │ more words',
      '│ in a cell    │ in another',
      '│              │ cell',
    ])
  })

  it('B-CLI-304: a tall paragraph is written before its end, each word once', () => {
    const words = Array.from({ length: 800 }, (_, i) => `word${i}`)
    const stream = new MarkdownStream()
    const rows: string[] = []
    let live = 0
    for (const word of words) {
      stream.push(`${word} `)
      const { finished, open } = stream.look(STYLE)
      rows.push(...finished)
      live = Math.max(live, open.length)
    }
    expect(rows.length).toBeGreaterThan(100)
    expect(live).toBeLessThanOrEqual(15)
    rows.push(...stream.end(STYLE))
    expect(rows.join(' ').replaceAll('│ ', '').split(/\s+/)).toEqual(words)
  })

  it('B-CLI-305: without a lexer, or for a file, text is drawn as it was written', () => {
    const file = { columns: Number.POSITIVE_INFINITY, hasColours: false }
    expect(modelText('plain\n\n\nlines', file)).toBe('│ plain\n│\n│ lines')
  })

  it('B-CLI-309: a block that is too long to wait for loses nothing', () => {
    const table = `| n |\n|---|\n${Array.from({ length: 6_000 }, (_, i) => `| row ${i} |`).join('\n')}`
    const said = inPieces(table, [4_000])
    for (const i of [0, 1_234, 5_999]) expect(said.match(new RegExp(`row ${i}\\b`, 'g'))).toHaveLength(1)
  })
})

describe('the colours of code', () => {
  const colours = (name: string, ...lines: readonly string[]): string => {
    let state = ''
    return lines
      .map((line) => {
        const coloured = colourLine(line, name, state)
        state = coloured.state
        expect(textOfRuns(coloured.runs)).toBe(line)
        return coloured.runs.map(({ text, codes }) => (codes === '' ? text : `<${codes}:${text}>`)).join('')
      })
      .join('\n')
  }

  it('B-CLI-306: words, texts, numbers and comments of each language have their colour', () => {
    expect(colours('ts', 'const a = "x\\"y" + 12 // end')).toBe('<35:const> a = <32:"x\\"y"> + <33:12> <2:// end>')
    expect(colours('python', "def f(): return 'a' # x")).toBe("<35:def> f(): <35:return> <32:'a'> <2:# x>")
    expect(colours('bash', 'if [ "$A" ]; then echo a#b; fi # x')).toBe(
      '<35:if> [ <32:"$A"> ]; <35:then> <35:echo> a#b; <35:fi> <2:# x>',
    )
    expect(colours('go', 'func main() { x := `a` }')).toBe('<35:func> main() { x := <32:`a`> }')
    expect(colours('rust', "fn f<'a>(c: char) { let x = 'y'; }")).toBe(
      "<35:fn> f<'a>(c: char) { <35:let> x = <32:'y'>; }",
    )
    expect(colours('sql', "SELECT 'a' from t -- x")).toBe("<35:SELECT> <32:'a'> <35:from> t <2:-- x>")
    expect(colours('json', '{"a": [1.5, true, "b"]}')).toBe('{<36:"a">: [<33:1.5>, <35:true>, <32:"b">]}')
    expect(colours('diff', '@@ -1 +1 @@', '-old', '+new', ' same')).toBe(
      '<36:@@ -1 +1 @@>\n<31:-old>\n<32:+new>\n same',
    )
    expect(colours('brainfuck', 'const "a"')).toBe('const "a"')
  })

  it('B-CLI-307: a comment or a text over several lines keeps its colour', () => {
    expect(colours('ts', 'a /* one', 'two */ b `x', 'y` c')).toBe('a <2:/* one>\n<2:two */> b <32:`x>\n<32:y`> c')
    expect(colours('python', 'x = """a', 'b # no', '""" # c')).toBe('x = <32:"""a>\n<32:b # no>\n<32:"""> <2:# c>')
  })

  it('B-CLI-307: a line over 2,000 characters has no colour', () => {
    expect(colours('ts', `const ${'x'.repeat(2_000)}`)).not.toContain('<')
  })
})
