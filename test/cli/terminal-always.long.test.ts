// Approvals in a chat: "always" with a prefix rule and where it is kept, several calls that wait, an edit in an editor,
// and the bell.
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()

async function chat(env: Readonly<Record<string, string>> = {}): Promise<Screen> {
  const opened = openScreen(stage, env)
  opened.enter('clear; terret interactive --trust')
  await opened.until(PROMPT)
  return opened
}
const bash = (command: string) => ({ calls: [{ tool: 'bash', args: { command } }] })
const write = (path: string, content: string) => ({ tool: 'write', args: { path, content } })
const AT_REST = /Done\.[\s\S]*tokens\n\n.*\n›$/

describe.skipIf(noTmux)('approvals in a chat', { timeout: 120_000 }, () => {
  it.skipIf(noBubblewrap)(
    'B-CLI-365: always offers a prefix rule, shows what else it allows, and keeps it for the folder if the person says so',
    async () => {
      const script = [bash('touch mark one'), bash('touch mark two'), bash('touch mark three; touch four'), 'Done.']
      await scriptedBy(script, { bash: true })
      const seen = await chat()
      seen.enter('Go.')
      await seen.until(/touch mark one[\s\S]*k always…[^›]*›$/)
      seen.enter('k')
      await seen.until(/2 {2}touch mark \*\n\s+also allows: touch mark with any words behind it[\s\S]*Which rule\?.*›$/)
      seen.enter('7')
      await seen.until(/none ›\n|Allow it\?[^›]*›$/)
      seen.enter('k')
      await seen.until(/Which rule\?[^›]*›$/)
      seen.enter('2')
      await seen.until(
        /without asking: allow tool bash, command touch mark \*[\s\S]*this run · f this folder · n no ›$/,
      )
      seen.enter('f')
      // The second call fits the rule. The third has an operator, and is asked about.
      await seen.until(/four[\s\S]*Allow it\?[^›]*›$/)
      expect(seen.text()).not.toContain('k always… · l later\n')
      seen.enter('n no')
      await seen.until(AT_REST)
      expect(existsSync(join(stage.folder, 'two'))).toBe(true)
      expect(existsSync(join(stage.folder, 'four'))).toBe(false)
      expect((await stage.terret('policy')).out).toMatch(/Kept 1 .*touch mark \*/)
    },
  )

  it.skipIf(noBubblewrap)(
    'B-CLI-366: a rule kept for this run is in the log, counts in whatever process goes on, and ends with the run',
    async () => {
      await scriptedBy([bash('touch mark one'), bash('touch mark two'), 'Done.', bash('touch mark three'), 'Over.'], {
        bash: true,
      })
      const seen = await chat()
      seen.enter('Go.')
      await seen.until(/k always…[^›]*›$/)
      seen.enter('k')
      await seen.until(/Which rule\?[^›]*›$/)
      seen.enter('2')
      await seen.until(/n no ›$/)
      seen.enter('r')
      await seen.until(AT_REST)
      expect(existsSync(join(stage.folder, 'two'))).toBe(true)
      expect((await stage.terret('policy')).out).toContain('Rules     none')
      seen.enter('Again.')
      await seen.until(/touch mark three[\s\S]*Allow it\?[^›]*›$/)
      const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation')
      expect(out).toMatch(/allowed this for this run/)
    },
  )

  it('B-CLI-367: of several calls that wait there is a list first, and "d all" shows each of them whole', async () => {
    await scriptedBy([{ calls: [write('one.txt', 'uno\n'), write('two.txt', 'due\n')] }, 'Done.'])
    const seen = await chat()
    seen.enter('Write.')
    await seen.until(/2 calls wait for you:\n {2}1 write one\.txt.*\n {2}2 write two\.txt[\s\S]*d all[^›]*›$/)
    seen.enter('d all')
    await seen.until(/\+ ?uno[\s\S]*\+ ?due[\s\S]*Allow it\?[^›]*›$/)
    expect(existsSync(join(stage.folder, 'one.txt'))).toBe(false)
    seen.enter('y')
    await seen.until(/two\.txt[\s\S]*Allow it\?[^›]*›$/)
    seen.enter('y')
    await seen.until(AT_REST)
    expect(readFileSync(join(stage.folder, 'two.txt'), 'utf8')).toBe('due\n')
  })

  it('B-CLI-368: e opens the editor, and the call runs with what was written there', async () => {
    await scriptedBy([{ calls: [write('one.txt', 'uno\n')] }, 'Done.'])
    const editor = stage.write('editor', '#!/bin/sh\nsed -i s/uno/ein/ "$1"\n')
    chmodSync(editor, 0o755)
    const seen = await chat({ EDITOR: editor })
    seen.enter('Write.')
    await seen.until(/Allow it\?[^›]*›$/)
    seen.enter('e')
    await seen.until(/ein[\s\S]*Allow it\?[^›]*›$/)
    seen.enter('y')
    await seen.until(AT_REST)
    expect(readFileSync(join(stage.folder, 'one.txt'), 'utf8')).toBe('ein\n')
  })

  it('B-CLI-368: without an editor, or with one that fails, the arguments are asked for on one line', async () => {
    await scriptedBy([{ calls: [write('one.txt', 'uno\n')] }, 'Done.'])
    const seen = await chat({ EDITOR: 'false' })
    seen.enter('Write.')
    await seen.until(/Allow it\?[^›]*›$/)
    seen.enter('e')
    await seen.until(/arguments as JSON, on one line[^›]*›$/)
    seen.enter('')
    await seen.until(/as they are\) ›[\s\S]*Allow it\?[^›]*›$|Allow it\?[^›]*›$/)
    seen.enter('y')
    await seen.until(AT_REST)
    expect(provider.chaos?.requests).toHaveLength(2)
  })

  it("B-CLI-369: a question that nobody answers rings the bell, and the setting is the user's", async () => {
    await scriptedBy([{ calls: [write('one.txt', 'uno\n')] }, 'Done.'])
    const seen = await chat()
    seen.enter('Write.')
    await seen.until(/Allow it\?[^›]*›$/)
    await seen.rang()
    stage.write('work/.terret/config.json', '{"bell": false}')
    expect((await stage.terret('run', 'Hello.')).err).toContain('"bell" is not for a workspace to choose')
    stage.write('work/.terret/config.json', '{}')
    stage.configure({ bell: 'loud' })
    expect((await stage.terret('run', 'Hello.')).err).toContain('"bell" must be true or false')
  })
})
