// Whole scenes of a chat as they stand in a real terminal: at three sizes, with colours and without.
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { expectScreen, noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

const SOURCE = `export function sum(numbers) {
  let total = 0
  for (let i = 0; i <= numbers.length; i++) total += numbers[i]
  return total // the sum of every number of the list, one after the other, from the first to the last
}
`
const call = (tool: string, args: Record<string, string>) => ({ tool, args })
const REPLIES = [
  {
    text: 'The loop runs **one step too far**: `i <= numbers.length`.',
    calls: [
      call('edit', { path: 'src/sum.js', old_string: 'i <= numbers', new_string: 'i < numbers' }),
      call('bash', { command: 'npm test' }),
    ],
  },
  { calls: [call('bash', { command: 'for i in $(seq 1 28); do echo "not ok $i - 日本語 sums"; done; exit 3' })] },
  'The tests fail, and **nothing** else is wrong.',
]

async function chat(columns: number, rows: number, env: Readonly<Record<string, string>> = {}): Promise<Screen> {
  stage.write('work/src/sum.js', SOURCE)
  await scriptedBy(REPLIES, { bash: true })
  const seen = openScreen(stage, env)
  seen.resize(columns, rows)
  seen.enter('clear; terret interactive --trust')
  await seen.until(PROMPT)
  return seen
}

/** At the question about the first of two calls. */
async function askIn(seen: Screen): Promise<void> {
  seen.enter('Fix the sum, and run the tests.')
  await seen.until(/Allow it\?[^›]*›$/)
}

describe.skipIf(noTmux || noBubblewrap)('scenes of a chat', { timeout: 180_000 }, () => {
  it.each([
    [80, 24],
    [120, 40],
    [200, 50],
  ])('B-CLI-367, B-CLI-365, B-CLI-312, B-CLI-377: at %i columns', async (columns, rows) => {
    const seen = await chat(columns, rows)
    await askIn(seen)
    expectScreen(seen.text(), `scene-question-${columns}`, stage)
    seen.enter('y')
    await seen.until(/allowed\n[\s\S]*Allow it\?[^›]*›$/)
    seen.enter('k')
    await seen.until(/Which rule\?[^›]*›$/)
    expectScreen(seen.text(), `scene-always-${columns}`, stage)
    seen.enter('n')
    await seen.until(/Which rule\?[\s\S]*Allow it\?[^›]*›$|Allow it\?[^›]*›$/)
    seen.enter('n not now')
    await seen.until(/refused: not now[\s\S]*seq 1 28[\s\S]*Allow it\?[^›]*›$/)
    seen.enter('y')
    await seen.until(/nothing else is wrong\.[\s\S]*tokens\n[\s\S]*\n›$/)
    expectScreen(seen.text(), `scene-failed-${columns}`, stage)
    seen.enter('/rewind')
    await seen.until(/Go back to before ›[\s\S]*❯ [^\n]*/)
    expectScreen(seen.text().replace(/· [^·\n]* ago$/gm, '· just now'), `scene-rewind-${columns}`, stage)
    seen.keys('Escape')
    await seen.until(/\n›$/)
  })

  it('B-CLI-314, B-TALK-17: without colours a change is marked by brackets, and nothing has a colour', async () => {
    const seen = await chat(80, 24, { NO_COLOR: '1' })
    await askIn(seen)
    const shown = seen.text(true)
    // oxlint-disable-next-line no-control-regex -- they are what it is about
    expect(shown).not.toMatch(/\u001b\[[\d;]*3[0-7]/)
    expect(shown).toContain('i [<=] numbers.length')
    expectScreen(shown, 'scene-no-colour', stage)
    seen.keys('Escape')
    await seen.until(/It waits[\s\S]*\n›$/)
  })
})
