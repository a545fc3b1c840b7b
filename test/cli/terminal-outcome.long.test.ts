// What a real terminal shows of commands that fail, of calls that were made before, and of what was stopped.
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const terminal = (): Screen => openScreen(stage)

const bash = (command: string) => ({ calls: [{ tool: 'bash', args: { command } }] })
/** More than a result has in it. */
const LONG = 'seq -f %060.0f 1 1200'
const settings = { bash: true, mode: 'auto' }
const failing = bash('seq 1 30; echo oops >&2; exit 3')
/** Begins to answer, and never ends. */
const stalled = { text: 'I think that it could well be', deltas: 9, chaos: { stallAfterBytes: 900 } }
const slow = bash('for i in 1 2 3; do echo part $i; done; sleep 8; echo never')
const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)

describe.skipIf(noTmux || noBubblewrap)('commands that fail', { timeout: 120_000 }, () => {
  it('B-SHOW-1: run, history, inspect and a page show the exit code, the lines and the last of them', async () => {
    await scriptedBy([failing, 'It failed.'], settings)
    const { err, code } = await stage.terret('run', 'Go.')
    expect(code).toBe(0)
    expect(err).toMatch(/^ {2}✗ bash .* · exit 3 · 31 lines · [\d.]+ s$/m)
    const shown = ['    ┊ 25 lines before these', '    │ 26', '    │ 30', '    │ oops']
    for (const line of shown) expect(err.split('\n')).toContain(line)
    expect((await stage.terret('history', 'latest')).out).toMatch(
      /agent\.tool_result +\S+ ✗ bash .* · exit 3 · 31 lines · [\d.]+ s {2}oops$/m,
    )
    expect((await stage.terret('inspect', 'latest')).out).toContain('bash: 1 exit 3\n')
    const page = (await stage.terret('export', 'latest', '--format', 'md')).out
    expect(page).toMatch(/: exit 3 · 31 lines\n\nstdout:\n\n```\n1\n2\n/)
    expect(page).toContain('stderr:\n\n```\noops\n```')
  })

  it('B-SHOW-1, B-SHOW-2, B-SHOW-4, B-SHOW-5: the chat shows it, /show has all that was printed, and calls of earlier chats are there', async () => {
    await scriptedBy([failing, 'It failed.', bash(LONG), 'It went well.'], settings)
    const seen = terminal()
    seen.enter('clear; terret interactive')
    await seen.until(PROMPT)
    seen.enter('Go.')
    await seen.until(
      /✗ bash .* exit 3 · 31 lines · [\d.]+ s #1\n {4}┊ 25 lines before these \(Ctrl-O\)\n[\s\S]* {4}│ oops\n[\s\S]*It failed\./,
    )
    expect(seen.text(true)).toContain('\u001b[31m✗')
    await seen.until(/tokens\n\n.*\n›$/)
    seen.enter('Again.')
    await seen.until(/✓ bash seq -f .* · 1,200 lines · [\d.]+ s #2[\s\S]*It went well\.[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('/quit')
    await seen.until('Go on with')
    seen.enter('clear; terret interactive --continue')
    await seen.until(
      /✗ bash .* exit 3 · 31 lines · [\d.]+ s #1[\s\S]*✓ bash seq -f .* · 1,200 lines · [\d.]+ s #2[\s\S]*\n›$/,
    )
    seen.enter('/show 1')
    await seen.until(/stdout, 30 lines:\n {2}│ 1\n[\s\S]*stderr, 1 line:\n {2}│ oops\n/)
    seen.enter('/show 2 all')
    await seen.until(/ {2}│ 0+900\n[\s\S]* {2}│ 0+1200\n/)
    seen.enter('/show 9')
    await seen.until('There is no call 9. /calls lists them; the last is /show 2.')
    seen.enter('/calls')
    await seen.until(/✗ bash .* #1\n {2}✓ bash .* #2\n {2}\/show N unfolds one\./)
  })

  it('B-SHOW-6: a parked edit that no longer fits says so in a chat that is opened again, whichever process ran it', async () => {
    const edit = { calls: [{ tool: 'edit', args: { path: 'a.txt', old_string: 'two', new_string: 'zwei' } }] }
    await scriptedBy([edit, 'I could not.'], {})
    for (const isRunElsewhere of [false, true]) {
      await provider.chaos?.close()
      await scriptedBy([edit, 'I could not.'], {})
      stage.write('work/a.txt', 'one\ntwo\n')
      await stage.terret('run', 'Edit.')
      stage.write('work/a.txt', 'something else\n')
      // What was shown is not what is there: the question comes once more, with the file as it is now.
      if (isRunElsewhere) for (const _ of [1, 2]) await stage.terret('approve', 'latest', '--resume')
      const seen = terminal()
      seen.enter('clear; terret interactive --continue')
      if (!isRunElsewhere) {
        await seen.until('Allow it?')
        seen.enter('y')
        await seen.until(/allowed[\s\S]*Allow it\?/)
        seen.enter('y')
      }
      await seen.until(/✗ edit a\.txt · error: .* #1\n[\s\S]*I could not\./)
      await seen.until(PROMPT)
      seen.enter('/show')
      await seen.until(/#1 edit · error: /)
      await seen.close()
    }
  })
})

describe.skipIf(noTmux || noBubblewrap)('what was stopped', { timeout: 120_000 }, () => {
  it('B-SHOW-7: in a chat a stopped answer and a stopped command are shown as cut, also later, and the next request has both', async () => {
    const chaos = await scriptedBy([stalled, slow, 'I go on.'], settings)
    const seen = terminal()
    seen.enter('clear; terret interactive')
    await seen.until(PROMPT)
    seen.enter('Hello')
    await seen.until('│ I think')
    seen.keys('C-c')
    await seen.until(/│ I think.*\n\n! The answer was cut here[\s\S]*Stopped\.[\s\S]*\n›$/)
    seen.enter('Run it')
    await seen.until('part 3')
    seen.keys('C-c')
    await seen.until(
      /✗ bash .* stopped, output cut · 3 lines · [\d.]+ s #1\n {4}│ part 1\n {4}│ part 2\n {4}│ part 3\n[\s\S]*Stopped\.[\s\S]*\n›$/,
    )
    seen.enter('And now?')
    await seen.until(/I go on\.[\s\S]*tokens\n\n.*\n›$/)
    const last = sent(chaos.requests.length - 1)
    for (const text of ['I think', 'kind=\\"cut\\"', 'part 3', 'The output is cut here.']) expect(last).toContain(text)
    seen.keys('C-d')
    await seen.until('Go on with')
    seen.enter('clear; terret interactive --continue')
    await seen.until(
      /│ I think.*\n\n! The answer was cut here[\s\S]*stopped, output cut · 3 lines · [\d.]+ s #1[\s\S]*\n›$/,
    )
  })

  it('B-SHOW-7: so does run, and inspect and a page tell it', async () => {
    const chaos = await scriptedBy([stalled, slow, 'I go on.'], settings)
    const seen = terminal()
    seen.enter('clear; terret run Hello')
    await seen.until('I think')
    seen.keys('C-c')
    await seen.until(/│ I think.*\n! The answer was cut here[\s\S]*interrupted · /)
    expect((await stage.terret('inspect', 'latest')).out).toMatch(/^I think.*\n! The answer was cut here/m)
    const page = (await stage.terret('export', 'latest', '--format', 'md')).out
    expect(page).toMatch(/## Agent\n\nI think.*\n\n\*The answer was cut here/)
    seen.enter('clear; terret run --continue "Run it"')
    await seen.until('part 3')
    seen.keys('C-c')
    await seen.until(/✗ bash .* · stopped, output cut · 3 lines · [\d.]+ s\n {4}│ part 1\n[\s\S]*interrupted · /)
    seen.enter('clear; terret run --continue "And now?"')
    await seen.until('I go on.')
    const last = sent(chaos.requests.length - 1)
    for (const text of ['I think', 'kind=\\"cut\\"', 'part 3', 'The output is cut here.']) expect(last).toContain(text)
  })
})
