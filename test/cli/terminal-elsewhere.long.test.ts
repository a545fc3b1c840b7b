// A chat and a run at a real terminal while another process decides and works in the same session: what the log says is what is shown.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

const terminal = (): Screen => openScreen(stage)
const write = (path: string) => ({ tool: 'write', args: { path, content: `${path}\n` } })
const there = (path: string): boolean => existsSync(join(stage.folder, path))
const ASKED = /Allow it\?[^?]*›$/

describe.skipIf(noTmux)('a session that another process works on too', { timeout: 120_000 }, () => {
  it('B-CHATLOG-1: after "later" the chat shows what another process decided and ran, and all later calls', async () => {
    await scriptedBy([{ calls: [write('one.txt')] }, 'One is there.', { calls: [{ tool: 'list', args: {} }] }, 'Seen.'])
    const seen = terminal()
    seen.enter('clear; terret interactive --trust')
    await seen.until(PROMPT)
    seen.enter('Write one file.')
    await seen.until(ASKED)
    seen.enter('l')
    await seen.until(/It waits\.[^›]*\n›$/)
    expect(await stage.apart('approve', 'latest', '--yes', '--resume', '--by', 'ann')).toMatchObject({ code: 0 })
    expect(there('one.txt')).toBe(true)
    // Nobody typed anything: the chat reads the log.
    const shown = await seen.until(/One is there\.[^›]*\n›$/)
    expect(shown).toMatch(/allowed by ann/)
    expect(shown).toMatch(/✓ write one\.txt[^\n]*#1/)
    seen.enter('And now look.')
    const after = await seen.until(/Seen\.[^›]*\n›$/)
    expect(after).toMatch(/✓ list[^\n]*#2/)
    expect(after).not.toMatch(/· write one\.txt/)
  })

  it('B-CHATLOG-1: a message that is entered at once after another process worked shows that work first', async () => {
    await scriptedBy([{ calls: [write('one.txt')] }, 'One is there.', { calls: [{ tool: 'list', args: {} }] }, 'Seen.'])
    const seen = terminal()
    seen.enter('clear; terret interactive --trust')
    await seen.until(PROMPT)
    seen.enter('Write one file.')
    await seen.until(ASKED)
    seen.enter('l')
    await seen.until(/It waits\.[^›]*\n›$/)
    seen.type('And now look.')
    await stage.apart('approve', 'latest', '--yes', '--resume', '--by', 'ann')
    seen.keys('Enter')
    const shown = await seen.until(/Seen\.[^›]*\n›$/)
    expect(shown).toMatch(/allowed by ann[\s\S]*✓ write one\.txt[^\n]*#1[\s\S]*✓ list[^\n]*#2/)
    expect(shown.match(/One is there\./g)).toHaveLength(1)
  })

  it('B-CHATLOG-2: an open question of a chat is withdrawn when another process decides, and the chat says who decided', async () => {
    await scriptedBy([{ calls: [write('one.txt'), write('two.txt')] }, 'Done.'])
    const seen = terminal()
    seen.enter('clear; terret interactive --trust')
    await seen.until(PROMPT)
    seen.enter('Write two files.')
    await seen.until(ASKED)
    const first = /one\.txt[^\n]*\(call (\S+)\)/.exec(seen.text())?.[1] ?? ''
    const rejected = await stage.apart('reject', 'latest', first, '--yes', '--why', 'not this one', '--by', 'ann')
    expect(rejected).toMatchObject({ code: 0 })
    const asked = await seen.until(/\? write two\.txt[\s\S]*Allow it\?[^?]*›$/)
    expect(asked).toMatch(/refused by ann: not this one/)
    seen.enter('y')
    const shown = await seen.until(/Done\.[^›]*\n›$/)
    expect([there('one.txt'), there('two.txt')]).toEqual([false, true])
    expect(shown.match(/refused by ann/g)).toHaveLength(1)
  })

  it('B-CHATLOG-2: an open question of a run is withdrawn when another process decides, and the run goes on', async () => {
    await scriptedBy([{ calls: [write('one.txt')] }, 'Done.'])
    const seen = terminal()
    seen.enter('clear; terret run --trust Write one file.')
    await seen.until(ASKED)
    await stage.apart('approve', 'latest', '--yes', '--by', 'ann')
    const shown = await seen.until(/Done\.\ncompleted[^\n]*\n\$$/)
    expect(shown).toMatch(/allowed by ann/)
    expect(there('one.txt')).toBe(true)
  })

  it('B-CHATLOG-2: so is a question of the model that another process answers, also on a dumb terminal', async () => {
    const ask = (question: string) => ({ calls: [{ tool: 'ask_user', args: { question } }] })
    for (const env of [{}, { TERM: 'dumb' }]) {
      await scriptedBy([ask('Which colour?'), 'Blue it is.'])
      const seen = openScreen(stage, env)
      seen.enter('clear; terret interactive --trust')
      await seen.until(/\n[›>]$/)
      seen.enter('Paint it.')
      await seen.until(/Your answer \(empty: later\) ›$/)
      const { callId } = JSON.parse((await stage.terret('pending', 'latest', '--json')).out) as {
        readonly callId: string
      }
      expect(await stage.apart('answer', 'latest', callId, 'blue', '--by', 'ann')).toMatchObject({ code: 0 })
      const shown = await seen.until(/Blue it is\.[\s\S]*\n[›>]$/)
      expect(shown).toContain('This question is withdrawn: answered by ann.')
      await seen.close()
    }
  })

  it('B-CHATLOG-2: so is a question of a subagent, whose log is another one', async () => {
    const spawn = { tool: 'spawn_subagent', args: { agent_id: 'code_executor', prompt: 'Write it.', blocking: true } }
    await scriptedBy((request) => {
      const text = JSON.stringify(request.body)
      const isAnswered = text.includes('"role":"tool"')
      if (text.includes('Write one for me.')) return isAnswered ? 'All done.' : { calls: [spawn] }
      return isAnswered ? 'Written.' : { calls: [write('one.txt')] }
    })
    const seen = terminal()
    seen.enter('clear; terret interactive --trust')
    await seen.until(PROMPT)
    seen.enter('Write one for me.')
    await seen.until(ASKED)
    const [waiting = ''] = (await stage.terret('pending', 'latest', '--json')).out.trim().split('\n')
    const { sessionId, callId } = JSON.parse(waiting) as { readonly sessionId: string; readonly callId: string }
    expect(sessionId).toContain('~')
    expect(await stage.apart('approve', sessionId, callId, '--yes', '--by', 'ann')).toMatchObject({ code: 0 })
    const shown = await seen.until(/All done\.[^›]*\n›$/)
    expect(shown).toContain('This question is withdrawn: allowed by ann.')
    expect(there('one.txt')).toBe(true)
  })
})
