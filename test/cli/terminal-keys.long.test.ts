// The keys of the chat in a real terminal.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()

async function chat(args = '', env: Readonly<Record<string, string>> = {}): Promise<Screen> {
  const opened = openScreen(stage, env)
  opened.enter(`clear; terret interactive --trust ${args}`.trimEnd())
  await opened.until(PROMPT)
  return opened
}

const call = (tool: string, args: Record<string, string | boolean>) => ({ tool, args })
const write = (path: string, content: string) => call('write', { path, content })
const stalled = { text: 'I think that it could well be', deltas: 9, chaos: { stallAfterBytes: 900 } }
const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)
async function asked(times: number): Promise<void> {
  while ((provider.chaos?.requests.length ?? 0) < times) await new Promise((resolve) => void setTimeout(resolve, 10))
}

describe.skipIf(noTmux)('the keys of a chat', { timeout: 120_000 }, () => {
  it('B-CLI-332: Esc stops an answer and no more, twice at rest enters /rewind and keeps the draft, and Alt-b is no Esc', async () => {
    await scriptedBy([stalled, 'Well then.'])
    const seen = await chat()
    seen.enter('Think.')
    await seen.until(/I think[\s\S]*\n›$/)
    seen.keys('Escape')
    await seen.until(/Stopped\.[\s\S]*\n›$/)
    expect(seen.text()).not.toContain('› /rewind')
    seen.enter('Go on.')
    await seen.until(/Well then\.[\s\S]*\n›$/)
    seen.type('one two')
    seen.keys('M-b')
    seen.type('and ')
    await seen.until('› one and two')
    seen.keys('Escape')
    seen.keys('Escape')
    await seen.until(/› \/rewind[\s\S]*› one and two$/)
  })

  it('B-CLI-332: Esc at a question leaves it for later', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'a\n')] }, 'Done.'])
    const seen = await chat()
    seen.enter('Write.')
    await seen.until('Allow it?')
    seen.keys('Escape')
    await seen.until(/It waits[\s\S]*\n›$/)
  })

  it('B-CLI-333: Shift-Tab changes the mode at rest, and while a run works for its next call', async () => {
    const slow = { calls: [call('list', { path: '.' })], chaos: { stallAfterBytes: 0, stallMs: 2_500 } }
    await scriptedBy([
      slow,
      { calls: [write('a.txt', 'a\n')] },
      'Written unasked.',
      { calls: [write('b.txt', 'b')] },
      'Refused.',
    ])
    const seen = await chat()
    seen.enter('Write.')
    await asked(1)
    seen.keys('BTab')
    await seen.until('mode auto')
    await seen.until(/Written unasked\.[\s\S]*\n›$/)
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('a\n')
    seen.keys('BTab')
    await seen.until(/mode plan[\s\S]*\n›$/)
    seen.keys('BTab')
    await seen.until(/mode plan[\s\S]*mode ask[\s\S]*\n›$/)
  })

  it('B-CLI-331: a paste of a megabyte is one cell and is sent whole', async () => {
    await scriptedBy(['Read.'])
    const seen = await chat()
    const long = 'x\u001b[A é\n'.repeat(150_000)
    seen.type('see ')
    seen.paste(long)
    await seen.until('› see [pasted 150000 lines]')
    seen.keys('Enter')
    await seen.until(/Read\.[\s\S]*\n›$/)
    expect(provider.chaos?.requests).toHaveLength(1)
    expect(sent(0)).toContain(JSON.stringify(`${long}`).slice(1, -1))
  })

  it('B-CLI-335: Ctrl-R finds what was said before, and Esc keeps the draft', async () => {
    await scriptedBy(['A.', 'B.'])
    const seen = await chat()
    seen.enter('Fix the mean.')
    await seen.until(/A\.[\s\S]*\n›$/)
    seen.enter('Write the docs.')
    await seen.until(/B\.[\s\S]*\n›$/)
    seen.keys('C-r')
    await seen.until('History ›')
    seen.type('mean')
    await seen.until(/❯ Fix the mean\.\n/)
    seen.keys('Enter')
    await seen.until(/› Fix the mean\.$/)
    seen.keys('C-r')
    await seen.until(/History › Fix the mean\./)
    seen.keys('Escape')
    await seen.until(/› Fix the mean\.$/)
    expect(provider.chaos?.requests).toHaveLength(2)
  })

  it('B-CLI-336: Ctrl-G edits the draft; no editor, or one that fails, leaves it as it was', async () => {
    await scriptedBy(['Hello.'])
    const editor = stage.write('ed.sh', '#!/bin/sh\ncat "$1" > "$1.old"\nprintf "from the editor\\n" >> "$1"\n')
    const seen = await chat('', { VISUAL: '', EDITOR: `sh ${editor}` })
    seen.type('draft')
    seen.keys('C-g')
    await seen.until(/› draft\n\s+from the editor$/)
    seen.keys('Enter')
    await seen.until(/Hello\.[\s\S]*\n›$/)
    expect(sent(0)).toContain('draft\\nfrom the editor')
    await seen.close()
    const failing = await chat('', { VISUAL: '', EDITOR: 'false' })
    failing.type('keep me')
    failing.keys('C-g')
    await failing.until(/The editor failed \(false\)[\s\S]*› keep me$/)
    await failing.close()
    const none = await chat('', { VISUAL: '', EDITOR: '' })
    none.type('keep me')
    none.keys('C-g')
    await none.until(/No editor is chosen[\s\S]*› keep me$/)
  })

  it('B-CLI-337: Ctrl-O shows the last calls in full and leaves the screen as it was', async () => {
    stage.write('work/notes.txt', Array.from({ length: 60 }, (_, at) => `line ${at}`).join('\n'))
    await scriptedBy([{ calls: [call('read', { path: 'notes.txt' })] }, 'Read.'])
    const seen = await chat()
    seen.keys('C-o')
    await seen.until('There was no call')
    seen.enter('Look.')
    await seen.until(/1 call · [\s\S]*\n›$/)
    const before = seen.text()
    seen.keys('C-o')
    await seen.until(/line 59[\s\S]*Esc leaves$/)
    seen.keys('Home')
    await seen.until(/notes\.txt[\s\S]*line 3/)
    seen.keys('Escape')
    await seen.until(/Read\.[\s\S]*\n›$/)
    expect(seen.text()).toBe(before)
  })

  it('B-CLI-338: @ offers the files of the repository, and a hostile name is shown clean and taken exactly', async () => {
    await scriptedBy(['Seen.'])
    for (const path of ['src/cli/chat/edit-line.ts', 'sim/scheduler.ts', 'ignored/edl.ts', '-dash \u001b[2J\nx.txt'])
      stage.write(join('work', path), 'content\n')
    stage.write('work/.gitignore', 'ignored\n')
    execFileSync('git', ['init', '-q'], { cwd: stage.folder })
    const seen = await chat()
    seen.type('look at @edl')
    await seen.until(/❯ src\/cli\/chat\/edit-line\.ts\n\s+sim\/scheduler\.ts$/)
    seen.keys('Enter')
    await seen.until(/› look at @src\/cli\/chat\/edit-line\.ts$/)
    seen.type('and @dash')
    await seen.until(/❯ "-dash \\u001b\[2J\\nx\.txt"/)
    seen.keys('Tab')
    await seen.until(/edit-line\.ts and @"-dash \\u001b\[2J\\nx\.txt"$/)
    seen.type('or @zzz')
    seen.keys('Enter')
    await seen.until(/Seen\.[\s\S]*\n›$/)
    expect(sent(0)).toContain(JSON.stringify('@"-dash \\u001b[2J\\nx.txt"').slice(1, -1))
  })

  it('B-CLI-338: without git the files are walked, and Esc closes the menu and leaves the word', async () => {
    stage.write('work/deep/er/file.txt', 'x')
    mkdirSync(join(stage.folder, 'node_modules'))
    writeFileSync(join(stage.folder, 'node_modules', 'file.txt'), 'x')
    const seen = await chat('--model offline:any', { PATH: '/nowhere' })
    seen.type('@file')
    await seen.until(/› @file\n\s+❯ deep\/er\/file\.txt$/)
    seen.keys('Escape')
    await seen.until(/› @file$/)
  })

  it('B-CLI-339: / offers the commands with their help; Tab takes the marked one', async () => {
    const seen = await chat('--model offline:any')
    seen.type('/s')
    await seen.until(/❯ \/show +\[N\][^\n]*unfold a call[\s\S]*\/session/)
    seen.keys('Down')
    await seen.until(/❯ \/session/)
    seen.keys('Tab')
    await seen.until(/› \/session$/)
    seen.keys('Enter')
    await seen.until('It begins with what you say first.')
  })

  it('B-CLI-340: Ctrl-Z and back leaves the draft, and gives the shell a plain terminal', async () => {
    const seen = await chat('--model offline:any')
    seen.type('a draft')
    await seen.until('› a draft')
    seen.keys('C-z')
    await seen.until(/Stopped[\s\S]*\$$/)
    seen.enter('stty -a | grep -o " icanon"')
    await seen.until(/\n icanon\n/)
    seen.enter('fg')
    await seen.until(/› a draft$/)
    seen.keys('C-u')
    seen.keys('C-d')
    await seen.until(/\$$/)
  })

  it('B-CLI-341: @file attaches what the tool read gives, and what is refused or unknown is no harm', async () => {
    stage.write('work/notes.txt', 'one\ntwo\nthree\n')
    stage.write('work/my notes.txt', 'four\n')
    stage.write('work/locked.txt', 'not for models\n')
    stage.write('outside.txt', 'not here\n')
    const policy = { rules: [{ effect: 'deny', tool: 'read', path: 'locked.txt', reason: 'It is locked.' }] }
    const file = stage.write('policy.json', JSON.stringify(policy))
    await scriptedBy(['Seen.'], { approvals: { policy: file } })
    const seen = await chat()
    seen.enter('See @notes.txt, no: @notes.txt @"my notes.txt" @locked.txt @../outside.txt @nobody ana@example.com')
    await seen.until(/Seen\.[\s\S]*\n›$/)
    expect(seen.text()).toMatch(/\+ notes\.txt · 3 lines\n\s+\+ my notes\.txt · 1 line\n/)
    expect(seen.text()).toMatch(/@locked\.txt: [^\n]*denied[^\n]*/)
    expect(seen.text()).toContain('@../outside.txt: ')
    expect(sent(0)).toContain('1\\tone\\n2\\ttwo')
    expect(sent(0)).toContain('1\\tfour')
    expect(sent(0)).not.toContain('not for models')
    expect(sent(0)).not.toContain('not here')
  })

  it('B-CLI-342: a picture is attached by @ and by a paste of its path; what is no picture is said in one line', async () => {
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
      'base64',
    )
    writeFileSync(join(stage.folder, 'dot.png'), png)
    writeFileSync(join(stage.folder, 'my dot.png'), png)
    stage.write('work/text.png', 'no picture')
    await scriptedBy(['A dot.'])
    const seen = await chat()
    seen.type('See @dot.png @text.png ')
    seen.paste(`'${join(stage.folder, 'my dot.png')}'`)
    await seen.until(/› See @dot\.png @text\.png \[my dot\.png · \d+ bytes\]$/)
    seen.keys('Enter')
    await seen.until(/A dot\.[\s\S]*\n›$/)
    expect(seen.text()).toMatch(
      /\+ dot\.png · \d+ bytes\n\s+@text\.png: It is no picture[^\n]*\n\s+\+ my dot\.png · \d+ bytes/,
    )
    expect(sent(0).split(png.toString('base64'))).toHaveLength(3)
  })

  it.skipIf(noBubblewrap)(
    'B-CLI-343: ! runs a command in the sandbox, and the next message tells what it printed, once',
    async () => {
      await scriptedBy(['I see.', 'And now.'], { bash: { risk: 'strict' } })
      const seen = await chat()
      seen.enter('!echo one; echo two >&2; touch ../no; exit 3')
      await seen.until(/✗ exit 3[\s\S]*\n›$/)
      expect(seen.text()).toMatch(/\n {2}one\n {2}two\n/)
      expect(existsSync(join(stage.folder, '..', 'no'))).toBe(false)
      seen.enter('What was that?')
      await seen.until(/I see\.[\s\S]*tokens\n[\s\S]*\n›$/)
      expect(sent(0)).toMatch(/I ran this command[^"]*echo one[^"]*\\none\\ntwo[^"]*exit code 3/)
      seen.enter('!sleep 60; echo late')
      await seen.until('! sleep 60; echo late · Esc stops')
      seen.keys('Escape')
      await seen.until(/✗ [^\n]*\n[\s\S]*✗ [^\n]*\n[\s\S]*\n›$/)
      seen.enter('!')
      await seen.until('Write a command after the "!"')
      expect(provider.chaos?.requests).toHaveLength(1)
      seen.enter('Again.')
      await seen.until(/And now\.[\s\S]*\n›$/)
      expect(sent(1).split('echo one; echo two')).toHaveLength(2)
    },
  )

  it('B-CLI-343: ! is refused where bash is off, and in the mode plan', async () => {
    const seen = await chat('--model offline:any')
    seen.enter('!echo one')
    await seen.until(/Commands are off here[^\n]*\n[\s\S]*›$/)
    await seen.close()
    stage.configure({ model: 'offline:any', bash: { risk: 'strict' }, mode: 'plan' })
    const planned = await chat()
    planned.enter('!echo one')
    await planned.until(/Tool "bash" refuses this call here\.[\s\S]*›$/)
  })

  it('B-CLI-345: the up arrow takes the last queued message back, and one that was sent stays sent', async () => {
    const slow = { calls: [call('list', { path: '.' })], chaos: { stallAfterBytes: 0, stallMs: 3_000 } }
    await scriptedBy([slow, 'As you wish.', 'Later.'])
    const seen = await chat()
    seen.enter('Look.')
    await asked(1)
    seen.enter('Be brief.')
    seen.enter('Be rude.')
    await seen.until(/queued: Be brief\.[\s\S]*queued: Be rude\./)
    seen.type('please')
    seen.keys('Up')
    await seen.until(/› Be rude\.\n\s+please$/)
    expect(seen.text()).not.toContain('queued: Be rude.')
    seen.keys('C-c')
    await seen.until(/Stopped|As you wish\.[\s\S]*tokens/)
    await seen.until(/\n›[^\n]*(\n[^\n]*)?$/)
    expect((provider.chaos?.requests ?? []).map(({ body }) => JSON.stringify(body)).join('')).not.toContain('Be rude.')
  })

  it('B-CLI-344: with the keys of vi the line is changed in normal mode, and Enter sends', async () => {
    await scriptedBy(['Hello.'], { vim: true })
    const seen = await chat()
    seen.type('one three')
    seen.keys('Escape')
    await seen.until(/‹ one three$/)
    seen.type('bitwo ')
    await seen.until(/› one two three$/)
    seen.keys('Escape')
    await seen.until(/‹ one two three$/)
    seen.type('0x')
    await seen.until(/‹ ne two three$/)
    seen.keys('Enter')
    await seen.until(/Hello\.[\s\S]*\n›$/)
    expect(sent(0)).toContain('ne two three')
  })
})
