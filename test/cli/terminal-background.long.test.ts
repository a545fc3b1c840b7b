// Commands that a person sends to the background of a chat, in a real terminal.
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()

async function chat(): Promise<Screen> {
  const opened = openScreen(stage)
  opened.enter('clear; terret interactive --trust')
  await opened.until(PROMPT)
  return opened
}

/** Prints a line, and another one once the file is there. */
const waiting = (file: string): string => `echo begun ${file}; until [ -e ${file} ]; do sleep 0.1; done; echo over`
const bash = (file: string) => ({ calls: [{ tool: 'bash', args: { command: waiting(file) } }] })
const settings = { bash: { risk: 'relaxed' }, mode: 'auto' }
const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)
const runs = (words: string): boolean => execFileSync('ps', ['-A', '-o', 'args=']).toString().includes(words)

describe.skipIf(noTmux || noBubblewrap)('commands in the background', { timeout: 120_000 }, () => {
  it('B-CLI-346, B-CLI-347: Ctrl-B ends the call, the command goes on and is listed, and the next message tells its end', async () => {
    await scriptedBy([bash('go'), 'It runs.', 'I know.'], settings)
    const seen = await chat()
    seen.enter('Serve it.')
    await seen.until(/1 line · Ctrl-B background #1\n {4}begun go/)
    seen.keys('C-b')
    await seen.until(
      /✓ bash echo begun go.* · in the background · 1 line · [\s\S]*It runs\.[\s\S]*1 in the background\n›$/,
    )
    expect(sent(1)).toMatch(/begun go\W.*The user sent it to the background/)
    seen.enter('/background')
    await seen.until(/ {2}1 bash echo begun go.*\n {6}begun go\n {2}\/background stop N/)
    stage.write('work/go', '')
    await seen.until(/✓ bash echo begun go.* · in the background: ended · 2 lines/)
    await seen.until(/\n› *$/)
    expect(seen.text()).not.toMatch(/1 in the background\n›$/)
    seen.enter('And?')
    await seen.until(/I know\.[\s\S]*\n›$/)
    expect(sent(2)).toMatch(/has ended\.\\n[^"]*begun go\\nover\\n\(It ended with exit code 0\.\)/)
  })

  it('B-CLI-346, B-CLI-347: a run that works hears of the end; /background stop ends one, and unknown ones are no harm', async () => {
    const slow = { text: 'Heard.', chaos: { stallAfterBytes: 0, stallMs: 3_000 } }
    const list = { calls: [{ tool: 'list', args: { path: '.' } }], chaos: slow.chaos }
    await scriptedBy([bash('never'), list, 'Heard.'], settings)
    const seen = await chat()
    seen.enter('Serve it.')
    await seen.until(/begun never\n/)
    seen.keys('C-b')
    await seen.until(/in the background: echo begun never/)
    seen.enter('/background stop 7')
    await seen.until('There is no command 7 in the background.')
    seen.enter('/background 7')
    await seen.until('Write /background, or /background stop N.')
    seen.enter('/background stop 1')
    await seen.until(/✗ bash echo begun never.* · in the background: stopped/)
    await seen.until(/Heard\.[\s\S]*\n›$/)
    expect(sent(2)).toMatch(/begun never\\n\(It was stopped\.\)/)
    expect(seen.text()).not.toContain('The command that went on')
    seen.enter('/background')
    await seen.until('Nothing goes on in the background.')
    expect(runs('begun never')).toBe(false)
  })

  it('B-CLI-346, B-CLI-347: a command of the person goes there too, the key moves the cursor elsewhere, and leaving stops it', async () => {
    await scriptedBy(['So it is.'], settings)
    const seen = await chat()
    seen.type('ac')
    seen.keys('C-b')
    seen.type('b')
    await seen.until(/› abc$/)
    seen.keys('C-c')
    await seen.until(/\n›$/)
    seen.enter(`!${waiting('mine')}`)
    await seen.until('begun mine\n')
    seen.keys('C-b')
    await seen.until(/1 in the background\n›$/)
    seen.enter('Is it there?')
    await seen.until(/So it is\.[\s\S]*\n›$/)
    expect(sent(0)).toContain('it goes on in the background')
    seen.keys('C-d')
    await seen.until('Stopped with the chat: 1 command in the background.')
    await seen.until(/Go on with: [\s\S]*\n\$$/)
    expect(runs('begun mine')).toBe(false)
  })
})
