// The command line in a real terminal: a chat, an approval, an interrupt, a resume. What the screen shows is the test.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { expectScreen, noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const terminal = (env: Readonly<Record<string, string>> = {}): Screen => openScreen(stage, env)

/** A chat that waits for its first word. */
async function chat(args = '', env: Readonly<Record<string, string>> = {}): Promise<Screen> {
  const opened = terminal(env)
  opened.enter(`clear; terret interactive --trust ${args}`.trimEnd())
  await opened.until(PROMPT)
  return opened
}

const call = (tool: string, args: Record<string, string | boolean>) => ({ tool, args })
const write = (path: string, content: string) => call('write', { path, content })
const fetching = { calls: [call('web_fetch', { url: 'http://127.0.0.1:9/' })] }
/** Begins to answer, and never ends. */
const stalled = { text: 'I think that it could well be', deltas: 9, chaos: { stallAfterBytes: 900 } }
async function asked(times: number): Promise<void> {
  while ((provider.chaos?.requests.length ?? 0) < times) await new Promise((resolve) => void setTimeout(resolve, 10))
}
const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)

describe.skipIf(noTmux)('a chat', { timeout: 120_000 }, () => {
  it('B-TALK-2, B-TALK-4, B-TALK-5, B-TALK-6: shows what is said and done, asks with the difference, and is as recorded', async () => {
    stage.write('work/notes.txt', 'one\ntwo\nthree\n')
    await scriptedBy([
      {
        reasoning: 'They want to know what is here. I list the folder first, then I look for the word.',
        text: 'I look around.',
        calls: [call('list', { path: '.' }), call('search', { pattern: 'two' }), call('read', { path: 'gone.txt' })],
      },
      '# Notes\n\nThere is one file, `notes.txt`. It has three lines, which are numbers that somebody wrote as words.\n\n- one is a number\n- two is a number, too, and this entry is long enough to show how the second row of a list is set\n\n```sh\ncat notes.txt\n```',
      { text: 'I change it.', calls: [call('edit', { path: 'notes.txt', old_string: 'two', new_string: 'zwei' })] },
      { calls: [write('more/new.txt', 'hello\n日本語 👍\n')] },
      'One of the two is done.',
    ])
    const seen = await chat()
    seen.enter('What is here?')
    await seen.until(/cat notes\.txt[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('Write two in German.')
    await seen.until('Allow it?')
    expect(readFileSync(join(stage.folder, 'notes.txt'), 'utf8')).toBe('one\ntwo\nthree\n')
    seen.enter('y')
    await seen.until(/new\.txt[\s\S]*Allow it\?/)
    seen.enter('n')
    await seen.until('Why not?')
    seen.enter('no new folders, please')
    await seen.until(/One of the two is done\.[\s\S]*tokens\n\n.*\n›$/)
    expectScreen(seen.text(), 'chat', stage)
    expect(readFileSync(join(stage.folder, 'notes.txt'), 'utf8')).toBe('one\nzwei\nthree\n')
    expect(existsSync(join(stage.folder, 'more'))).toBe(false)
    expect(sent(4)).toContain('no new folders, please')
  })

  it('B-TALK-9, B-TALK-11: Ctrl-C stops a reply and keeps the chat, twice leaves, and the session goes on later', async () => {
    await scriptedBy(['Hello Ana.', stalled, 'Well then.', 'You are Ana.'])
    const seen = await chat()
    seen.enter('I am Ana.')
    await seen.until(/Hello Ana\.[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('Think.')
    // It is shown while it is being said: this reply never ends.
    await seen.until(/I think[\s\S]*Esc stops\n›$/)
    seen.keys('C-c')
    await seen.until(/Stopped\.[\s\S]*\n›$/)
    seen.enter('Stop thinking.')
    await seen.until(/Well then\.[\s\S]*tokens\n\n.*\n›$/)
    seen.keys('C-c')
    await seen.until(/once more leaves[\s\S]*\n›$/)
    seen.keys('C-c')
    await seen.until(/Go on with: terret interactive [0-9a-f]{8}\n\$$/)
    seen.enter('terret interactive latest')
    await seen.until(/goes on, after \d+ events\.[\s\S]*Well then\.\n\n.*\n›$/)
    seen.enter('Who am I?')
    await seen.until(/You are Ana\.[\s\S]*tokens\n\n.*\n›$/)
    seen.keys('C-d')
    await seen.until(/interactive [0-9a-f]{8}\n\$$/)
    // How much of the stalled reply has come is up to the network.
    expectScreen(seen.text().replace(/I think.*/, 'I think…'), 'stopped', stage)
    expect(sent(3)).toContain('I am Ana.')
    expect((await stage.terret('list')).out.trimEnd().split('\n')).toHaveLength(1)
  })

  it('B-TALK-10: what is entered while it works is queued, and heard at its next step', async () => {
    const slow = { calls: [call('list', { path: '.' })], chaos: { stallAfterBytes: 0, stallMs: 2_500 } }
    await scriptedBy([slow, 'As you wish.'])
    const seen = await chat()
    seen.enter('Look.')
    await asked(1)
    seen.enter('Be brief.')
    await seen.until('queued: Be brief.')
    await seen.until(/As you wish\.[\s\S]*tokens\n\n.*\n›$/)
    expectScreen(seen.text(), 'queued', stage)
    expect(sent(1)).toContain('Be brief.')
  })

  it('B-TALK-12: a paste of three lines is one message, and so are lines that end in a backslash', async () => {
    await scriptedBy(['Three.', 'Two.'])
    const seen = await chat()
    seen.type('Count: ')
    seen.paste('alpha\nbeta\ngamma')
    await seen.until('› Count: [pasted 3 lines]')
    seen.keys('Enter')
    await seen.until(/Three\.[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('first\\')
    seen.enter('second')
    await seen.until(/Two\.[\s\S]*tokens\n\n.*\n›$/)
    expectScreen(seen.text(), 'paste', stage)
    expect(provider.chaos?.requests).toHaveLength(2)
    expect(sent(0)).toContain(JSON.stringify('Count: alpha\nbeta\ngamma'))
    expect(sent(1)).toContain(JSON.stringify('first\nsecond'))
  })

  it('B-LONGLINE-2: one pasted line of a megabyte is shown in short, sent whole, and the chat goes on', async () => {
    await scriptedBy(['Read.', 'Still here.'])
    const seen = await chat()
    const long = 'word and more '.repeat(75_000)
    seen.paste(long)
    await seen.until(`› [pasted ${long.length.toLocaleString('en')} characters]`)
    seen.enter('')
    await seen.until(/Read\.[\s\S]*tokens\n\n.*\n›$/)
    expect(sent(0)).toContain(long)
    seen.enter('Are you there?')
    await seen.until(/Still here\.[\s\S]*tokens\n\n.*\n›$/)
  })

  it('B-TALK-15, B-TALK-20: commands show, decide, undo, fork, change the mode and leave; Tab completes them', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'a\n')] }, 'Written.', { calls: [write('b.txt', 'b\n')] }, 'Here too.'])
    const seen = await chat()
    for (const text of ['/help', '/show', '/nonsense', '/sessio', '/session', '/model fake:m']) seen.enter(text)
    await seen.until('fake:m answers already')
    seen.enter('Write.')
    await seen.until('Allow it?')
    seen.enter('l')
    await seen.until('It waits.')
    seen.enter('/pending')
    await seen.until(/\/approve \S+ or \/reject/)
    seen.type('/app')
    seen.keys('Tab')
    await seen.until('› /approve')
    seen.keys('Enter')
    await seen.until(/Written\.[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('/show 1')
    await seen.until(/result:[\s\S]*\n›$/)
    seen.enter('/undo')
    await seen.until('a.txt: removed, as it was new')
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    seen.enter('/mode auto')
    // Entered while the chat changes its mode, it is heard after that.
    seen.enter('/fork')
    await seen.until('stays as it is.')
    seen.enter('Again.')
    await seen.until(/Here too\.[\s\S]*tokens\n\n.*\n›$/)
    expect(readFileSync(join(stage.folder, 'b.txt'), 'utf8')).toBe('b\n')
    seen.enter('/export chat.md')
    await seen.until('Wrote chat.md.')
    seen.enter('/cost')
    await seen.until(/1 calls?[^\n]* out\n\n.*\n›$/)
    seen.enter('/quit')
    await seen.until(/Go on with: terret interactive [0-9a-f]{8}\n\$$/)
    // What waits between two commands that were entered at once is up to the machine; what they say is not.
    expectScreen(seen.text(), 'commands', stage)
    expect((await stage.terret('list')).out.trimEnd().split('\n')).toHaveLength(2)
  })

  it('B-TALK-27: what is entered while the mode changes is heard after it, and who leaves meanwhile has left', async () => {
    await scriptedBy(['Hello.'])
    const seen = await chat()
    seen.enter('/mode auto')
    seen.enter('Hi.')
    await seen.until(/mode auto\n\n› Hi\.[\s\S]*Hello\.[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('/mode plan')
    seen.keys('C-d')
    await seen.until(/Go on with: terret interactive [0-9a-f]{8}\n\$$/)
  })

  it('B-TALK-8: a question of the model is answered in place, by a number where it offers choices', async () => {
    const question = { question: 'Which colour?', choices: ['red', 'green'] }
    await scriptedBy([
      { calls: [{ tool: 'ask_user', args: question }] },
      'Green it is.',
      { calls: [call('ask_user', { question: 'Why?' })] },
      'I see.',
    ])
    const seen = await chat()
    seen.enter('Paint.')
    await seen.until('Your answer, or a number')
    seen.enter('2')
    await seen.until(/Green it is\.[\s\S]*tokens\n\n.*\n›$/)
    seen.enter('Ask more.')
    await seen.until('Your answer (empty: later)')
    seen.enter('Because.')
    await seen.until(/I see\.[\s\S]*tokens\n\n.*\n›$/)
    expectScreen(seen.text(), 'answer', stage)
    expect(sent(1)).toContain('green')
    expect(sent(3)).toContain('Because.')
  })

  it('B-TALK-6, B-TALK-7: "a" allows the writes of the run, and what is no plain word decides nothing', async () => {
    stage.write('policy.json', JSON.stringify({ rules: [{ effect: 'ask', tool: 'write', path: 'sharp/**' }] }))
    const rules = { approvals: { policy: join(stage.folder, '..', 'policy.json') } }
    await scriptedBy(
      [{ calls: [write('1', '1')] }, { calls: [write('2', '2'), write('sharp/3', '3')] }, 'Done.'],
      rules,
    )
    const seen = await chat()
    seen.enter('Write.')
    await seen.until('Allow it?')
    seen.enter('yesterday I saw it')
    await seen.until('Say one of')
    expect(existsSync(join(stage.folder, '1'))).toBe(false)
    seen.enter('a')
    // The rule asks each time, and does not offer to stop asking.
    await seen.until(/sharp\/3[\s\S]*Allow it\? y yes, this call · n no · e edit · l later ›$/)
    seen.enter('y')
    await seen.until(/Done\.[\s\S]*tokens\n\n.*\n›$/)
    const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation')
    expect(out).toMatch(
      /allowed by (?!terret).*\n.*allowed by terret: .* allowed writes for this run\n.*allowed by (?!terret)/,
    )
  })

  it('B-TALK-6: "y" does not approve the next write, in whatever process the session goes on', async () => {
    await scriptedBy([{ calls: [write('1', '1')] }, { calls: [write('2', '2')] }, 'Done.'])
    const seen = await chat()
    seen.enter('Write.')
    await seen.until(/write 1[\s\S]*Allow it\?/)
    seen.enter('y')
    await seen.until(/write 2[\s\S]*Allow it\?[^\n]*›$/)
    seen.enter('l')
    await seen.until('It waits.')
    seen.keys('C-d')
    await seen.until(/interactive [0-9a-f]{8}\n\$$/)
    expect((await stage.terret('resume', 'latest')).code).toBe(3)
    await stage.terret('worker', '--idle')
    expect([existsSync(join(stage.folder, '1')), existsSync(join(stage.folder, '2'))]).toEqual([true, false])
  })

  it('B-POLICY-25: always shows the rule in words, is taken only after a yes to it, and counts at once', async () => {
    await scriptedBy([fetching, fetching, 'Done.'], { tools: ['web_fetch'] })
    const seen = await chat()
    seen.enter('Fetch.')
    await seen.until('k always, exactly this')
    seen.enter('always')
    await seen.until(/without asking: allow tool web_fetch, url is[\s\S]*Keep this rule/)
    seen.enter('n')
    await seen.until(/and nothing else[\s\S]*Allow it\?/)
    seen.enter('k')
    await seen.until(/and nothing else[\s\S]*and nothing else[\s\S]*Keep this rule/)
    seen.enter('y')
    // The second call is not asked about.
    await seen.until(/Done\.[\s\S]*tokens\n\n.*\n›$/)
    const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation')
    expect(out).toMatch(/allowed by (?!terret).*\n.*allowed by terret: .* always allows this/)
    expect((await stage.terret('policy')).out).toContain('Kept 1')
  })

  it('B-TALK-21: what another process decided is seen, and /approve decides only what was shown here', async () => {
    await scriptedBy(
      [{ calls: [call('list', {})] }, { calls: [write('1', '1')] }, { calls: [write('2', '2')] }, 'Done.'],
      {
        approvals: {
          policy: stage.write('policy.json', JSON.stringify({ rules: [{ effect: 'ask', tool: 'write' }] })),
        },
      },
    )
    const seen = await chat()
    seen.enter('Write.')
    await seen.until('Allow it?')
    seen.enter('l')
    await seen.until('It waits.')
    expect((await stage.terret('approve', 'latest', '--by', 'ana', '--resume')).code).toBe(3)
    seen.enter('/approve')
    await seen.until(/\? write 2[^\n]*\n[\s\S]*Allow it\?/)
    expect(existsSync(join(stage.folder, '2'))).toBe(false)
    seen.enter('y')
    await seen.until(/allowed by ana[\s\S]*Done\.[\s\S]*tokens\n\n.*\n›$/)
    expect(readFileSync(join(stage.folder, '2'), 'utf8')).toBe('2')
  })

  it('B-TALK-11: a chat that goes on with a fork shows what was said before it', async () => {
    await scriptedBy(['One.', 'Two.'])
    await stage.terret('run', 'First.')
    await stage.terret('fork', 'latest')
    const seen = await chat('-c')
    await seen.until(/› First\.\n\n│ One\.\n\n.*\n›$/)
  })

  it('B-TALK-14: what was said before comes back with the arrow, also in the next chat of the folder', async () => {
    await scriptedBy(['One.', 'Two.'])
    const seen = await chat()
    seen.enter('Say something.')
    await seen.until(/One\.[\s\S]*tokens\n\n.*\n›$/)
    seen.keys('C-d')
    await seen.until(/interactive [0-9a-f]{8}\n\$$/)
    seen.enter('clear; terret interactive')
    await seen.until(/leaves\.\n\n.*\n›$/)
    seen.type('a draft')
    seen.keys('Up')
    await seen.until(/› Say something\.$/)
    seen.keys('Down')
    await seen.until(/› a draft$/)
    seen.keys('Up', 'Enter')
    await seen.until(/Two\.[\s\S]*tokens\n\n.*\n›$/)
  })

  it('B-TALK-16: a terminal that is closed gives the session back, and another process goes on with the same run', async () => {
    await scriptedBy([stalled, 'Went on.'])
    const seen = await chat()
    seen.enter('Think.')
    await seen.until(/I think[\s\S]*Esc stops/)
    await seen.close()
    const { out } = await stage.terret('history', 'latest', '--event', 'model.failed')
    expect(out).toContain('interrupted')
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 0, out: 'Went on.\n' })
    expect(await stage.json('inspect', 'latest')).toMatchObject({ summary: { runs: 1 } })
  })

  it('B-TALK-17: without colours there are none, and a dumb terminal gets plain lines', async () => {
    await scriptedBy([{ calls: [write('a', 'a\n')] }, 'Done.', 'Done again.'])
    const seen = await chat('', { NO_COLOR: '1' })
    seen.enter('Write.')
    await seen.until('Allow it?')
    expect(seen.text(true)).not.toContain('\u001b[')
    seen.enter('y')
    await seen.until(/Done\.[\s\S]*tokens\n\n.*\n›$/)
    seen.keys('C-d')
    await seen.until(/interactive [0-9a-f]{8}\n\$$/)
    seen.enter('clear; TERM=dumb terret interactive latest')
    await seen.until(/\n>$/)
    seen.enter('Again.')
    await seen.until(/Done again\.[\s\S]*\n>$/)
    seen.keys('C-d')
    await seen.until(/interactive [0-9a-f]{8}\n\$$/)
    expectScreen(seen.text(), 'dumb', stage)
  })

  it('B-TALK-18: wide letters and another width leave the screen whole', async () => {
    await scriptedBy([stalled, '日本語のとても長い文はどこでも折り返せます。'.repeat(4)])
    const seen = await chat()
    seen.enter('日本語 👍🏽 é')
    await seen.until(/I think[\s\S]*Esc stops/)
    seen.type(
      'これは長い入力で、折り返されるまで続きます。👍👍👍 and then it goes on in letters that are not wide at all',
    )
    await seen.until(/not wi\s+de at all$/)
    // Typed text survives the end of the run.
    seen.keys('C-c')
    await seen.until(/Stopped\.[\s\S]*not wi\s+de at all$/)
    seen.resize(50, 30)
    await seen.until(/これは長い入力で、折り返されるまで続きます。👍\n/u)
    seen.resize(100, 30)
    await seen.until(/not wi\s+de at all$/)
    seen.keys('C-u')
    seen.enter('もう一度')
    await seen.until(/折り返せます。\n[\s\S]*tokens\n\n.*\n›$/)
    expectScreen(seen.text().replace(/I think.*/, 'I think…'), 'wide', stage)
  })
})

describe.skipIf(noTmux)('at a terminal', { timeout: 120_000 }, () => {
  it('B-TALK-19: run asks in place and goes on; Ctrl-C stops it, and resume goes on', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'a\n')] }, 'Written.', stalled, 'On it again.'])
    const seen = terminal()
    seen.enter('clear; terret run --trust Write a.txt.')
    await seen.until(/Allow it\? [^\n]*›$/)
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    seen.enter('y')
    await seen.until(/Written\.\ncompleted[^\n]*\n\$$/)
    seen.enter('terret run -c Think.')
    await seen.until('I think')
    seen.keys('C-c')
    await seen.until(/Go on with: terret resume [0-9a-f]{8}\n[^\n]*\n\$$/)
    seen.enter('terret resume latest')
    await seen.until(/On it again\.\ncompleted[^\n]*\n\$$/)
    expectScreen(seen.text(), 'run', stage)
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('a\n')
  })

  it('B-TALK-22: at the question of run a word that is neither yes, no nor later is asked again, and a no has a reason', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'a\n')] }, 'I see.'])
    const seen = terminal()
    seen.enter('clear; terret run --trust Write a.txt.')
    const questions = (count: number): RegExp => new RegExp(`(Allow it\\?[^?]*){${count}}›$`)
    await seen.until(questions(1))
    seen.enter('yes please')
    await seen.until(questions(2))
    seen.enter('k')
    await seen.until(questions(3))
    const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation')
    expect(out).toBe('')
    seen.enter('n It is too short.')
    await seen.until(/I see\.\ncompleted[^\n]*\n\$$/)
    expect(sent(1)).toContain('It is too short.')
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
  })

  it('B-TALK-23: told to end at a question, run decides nothing and ends as one that waits', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'a\n')] }, 'Written.'])
    const seen = terminal()
    // Not the function of the shell: the process itself is told.
    seen.enter(`clear; ${process.execPath} ${stage.command} run --trust Write a.txt.; echo code $?`)
    await seen.until('Allow it?')
    const rows = execFileSync('ps', ['-A', '-o', 'pid=,args='], { encoding: 'utf8' }).split('\n')
    const row = rows.find((each) => each.includes(`${stage.command} run --trust Write a.txt.`)) ?? ''
    const pid = Number.parseInt(row, 10)
    process.kill(pid, 'SIGTERM')
    await seen.until('code 3')
    expect((await stage.terret('approve', 'latest', '--resume')).code).toBe(0)
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('a\n')
  })

  it('B-POLICY-25: run offers always where it would be followed, and asks no more about the same call', async () => {
    await scriptedBy([fetching, fetching, 'Done.'], { tools: ['web_fetch'] })
    const seen = terminal()
    seen.enter('clear; terret run --trust Fetch.')
    await seen.until('y yes, this call · n no · e edit · k always, exactly this · l later ›')
    seen.enter('k')
    await seen.until(
      /without asking: allow tool web_fetch, url is[\s\S]*Keep this rule, and allow it\? r this run · f this folder · n no ›/,
    )
    seen.enter('y')
    await seen.until(/Done\.\ncompleted[^\n]*\n\$$/)
    expect((await stage.terret('policy')).out).toContain('Kept 1')
  })

  it.skipIf(noBubblewrap)(
    'B-TALK-24: what a running command printed last is shown, clean, and gone after it',
    async () => {
      const command = 'echo one; printf "\\033[2Jtwo of two\\n"; until [ -e go ]; do sleep 0.1; done'
      const bash = { calls: [call('bash', { command })] }
      await scriptedBy([bash, 'Done in the chat.', bash, 'Done alone.'], { bash: true })
      const running = /^\s+\\u\{1b\}\[2Jtwo of two$/m
      const seen = await chat('--mode auto')
      seen.enter('Go.')
      await seen.until(running)
      stage.write('work/go', '')
      await seen.until(/Done in the chat\.[\s\S]*›$/)
      expect(seen.text()).not.toMatch(running)
      seen.keys('C-d')
      await seen.until(/\$$/)
      rmSync(join(stage.folder, 'go'))
      seen.enter('clear; terret run --mode auto Go.')
      await seen.until(/bash: \\u\{1b\}\[2Jtwo of two/)
      stage.write('work/go', '')
      await seen.until(/Done alone\./)
    },
  )

  it('B-TALK-1: without a terminal a chat is refused in one line that says what to do instead, with exit code 2', async () => {
    await scriptedBy([])
    const { code, out, err } = await stage.terret('interactive')
    expect([code, out]).toEqual([2, ''])
    expect(err).toBe('terret: A chat needs a terminal. In a script, use: terret -p TASK\n')
    expect((await stage.terret('list', '--all')).out).toBe('')
  })
})
