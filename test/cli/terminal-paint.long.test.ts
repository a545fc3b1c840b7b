// What a real terminal shows of Markdown, calls and changes, at three sizes, with colours and without.
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { expectScreen, noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

const PAGE = `## What is wrong

The loop runs **one step too far**, see [the guide](https://example.com/loops):

\`\`\`js
/* counts
   all of them */
for (let i = 0; i <= n; i++) sum += values[i] // here
\`\`\`

1. change \`<=\` to \`<\`
2. run the tests
   - the unit tests
   - those of the page, which take longer and need a browser that is installed on the machine

| file | what it does | lines |
|------|--------------|------:|
| src/calc.js | adds the numbers of a list and divides the sum by how many there are | 5 |
| 日本語.md | 日本語の説明 | 20 |

> Tests first.

---

- [x] found
- [ ] fixed`

async function chat(columns: number, rows: number, env: Readonly<Record<string, string>> = {}): Promise<Screen> {
  const seen = openScreen(stage, env)
  seen.resize(columns, rows)
  seen.enter('clear; terret interactive --trust')
  await seen.until(PROMPT)
  return seen
}

const answered = /fixed\n\n.*tokens\n\n.*\n›$/

describe.skipIf(noTmux)('Markdown in a chat', { timeout: 120_000 }, () => {
  it.each([
    [80, 24],
    [120, 40],
    [200, 50],
  ])('B-CLI-308, B-CLI-311: is drawn at %i columns', async (columns, rows) => {
    await scriptedBy([{ text: PAGE, deltas: 40 }])
    const seen = await chat(columns, rows)
    seen.enter('What is wrong?')
    await seen.until(answered)
    expectScreen(seen.text(), `markdown-${columns}`, stage)
    expect(seen.text(true)).toContain('\u001b[35mfor')
  })

  it('B-CLI-308, B-TALK-17: without colours it has none, and without a terminal that moves a cursor no escape at all', async () => {
    await scriptedBy([PAGE, PAGE])
    const seen = await chat(80, 24, { NO_COLOR: '1' })
    seen.enter('What is wrong?')
    await seen.until(answered)
    expectScreen(seen.text(true), 'markdown-no-colour', stage)
  })

  it('B-CLI-315, B-CLI-316: lines above stay whole when the width changes, and a chat that goes on shows them again', async () => {
    const lines = Array.from({ length: 600 }, (_, i) => `- entry ${i} of the list`).join('\n')
    await scriptedBy([{ text: lines, deltas: 300 }])
    const seen = await chat(100, 30)
    seen.enter('List.')
    await seen.until(/entry 40 of/)
    seen.resize(70, 30)
    await seen.until(/entry 150 of/)
    seen.resize(110, 20)
    await seen.until(/entry 599 of the list\n\n.*tokens\n\n.*\n›$/)
    const shown = seen.text()
    for (let i = 0; i < 600; i += 1) expect(shown.split(`entry ${i} of the list\n`)).toHaveLength(2)
    seen.enter('/quit')
    await seen.until('Go on with')
    seen.enter('clear; terret interactive --continue')
    const again = await seen.until(/… 1 earlier message\n[\s\S]*entry 599 of the list\n\n.*\n›$/)
    expect(again).not.toContain('entry 190 of')
    expect(again).toContain('entry 210 of')
  })
})

describe.skipIf(noTmux)('a chat in a terminal that becomes narrower', { timeout: 120_000 }, () => {
  it('B-CLI-315: a row where the status stood takes the room of its text alone', async () => {
    const lines = Array.from({ length: 30 }, (_, i) => `- entry ${i}`)
    await scriptedBy([{ text: lines.join('\n'), deltas: 60, chaos: { dripMs: 2, splitBytes: 40 } }])
    const seen = await chat(100, 60)
    seen.enter('List.')
    await seen.until(/entry 29\n\n.*tokens\n\n.*\n›$/)
    seen.resize(30, 60)
    const rows = lines.map((line) => `│ •${line.slice(1)}\n`).join('')
    await seen.until(new RegExp(`${rows}\\n.*tokens\\n\\n.*\\n›$`))
  })
})

describe.skipIf(noTmux)('a chat in a terminal whose size changes', { timeout: 180_000 }, () => {
  it('B-CLI-315: thirty times while an answer streams, no row of the live part stays above, and each line is there once', async () => {
    const lines = Array.from(
      { length: 420 },
      (_, i) => `- entry ${i} of a list that is wrapped at some widths, as it is long`,
    )
    await scriptedBy([{ text: lines.join('\n'), deltas: 840, chaos: { dripMs: 9, splitBytes: 120 } }])
    const seen = await chat(100, 40)
    seen.enter('List.')
    await seen.until(/entry 5 /)
    let last = 5
    for (let i = 0; i < 30; i += 1) {
      seen.resize([100, 58, 80, 44][(i + 1) % 4] ?? 100, 40 - (i % 3))
      const shown = await seen.until(`entry ${last + 10} of`)
      last = Math.max(...[...shown.matchAll(/entry (\d+) of/g)].map(([, number]) => Number(number)))
    }
    await seen.until(/entry 419 [\s\S]*tokens\n\n.*\n›$/)
    const shown = seen.text()
    expect(shown.match(/.*(?:Esc stops|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]).*/gu)).toBeNull()
    for (let i = 0; i < lines.length; i += 1) expect(shown.split(`entry ${i} of`)).toHaveLength(2)
  })
})

describe.skipIf(noTmux || noBubblewrap)('calls in a chat', { timeout: 120_000 }, () => {
  it('B-CLI-312, B-CLI-313, B-CLI-314: are one line each, with the last output and the change', async () => {
    stage.write('work/calc.js', 'for (let i = 0; i <= n; i++) {\n  sum += i\n}\n')
    const call = (tool: string, args: Record<string, string>) => ({ tool, args })
    const edit = call('edit', { path: 'calc.js', old_string: '<=', new_string: '<' })
    const failing = call('bash', { command: 'for i in $(seq 1 28); do echo tick $i; done; sleep 2; exit 3' })
    await scriptedBy(
      [{ calls: [call('read', { path: 'calc.js' })] }, { calls: [edit] }, { calls: [failing] }, 'Done.'],
      {
        bash: true,
        mode: 'auto',
      },
    )
    const seen = await chat(80, 24)
    seen.enter('Fix it.')
    await seen.until(/bash for .*28 lines · Ctrl-B background #3\n( {4}tick \d+\n){5}/)
    await seen.until(/Done\.\n\n.*\n\n.*\n›$/)
    expectScreen(seen.text(), 'calls', stage)
  })
})
