// What is shown of a call that waits, what counts as a yes, and what is kept of what was said.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { clippedRows, shownAction, wordOf } from '../../src/cli/chat-approval.ts'
import { aboutOf } from '../../src/cli/chat-call.ts'
import { openHistory } from '../../src/cli/chat-history.ts'
import { homeOf, makeHome } from '../../src/cli/home.ts'
import type { Json, Pending } from '../../src/index.ts'
import { openStage, type Stage } from './stage.ts'

let stage: Stage
beforeEach(() => {
  stage = openStage()
})
afterEach(() => stage.close())

const filesIn = (folder: string): readonly string[] => readdirSync(folder).map((name) => join(folder, name))

const pending = (tool: string, args: Json): Pending => {
  return { callId: '5.0', tool, args, needs: 'approval', sessionId: 's', path: ['s'] }
}

describe('an action that waits', () => {
  it('B-TALK-5: a new file, a replaced one and an appended one are shown as differences', async () => {
    stage.write('work/a.txt', 'one\ntwo\n')
    const shown = async (args: Json) => (await shownAction(stage.folder, pending('write', args))).rows.slice(3)
    expect(await shown({ path: 'new.txt', content: 'x\n' })).toEqual(['  +x'])
    expect(await shown({ path: 'a.txt', content: 'one\nzwei\n' })).toEqual(['   one', '  -two', '  +zwei'])
    expect(await shown({ path: 'a.txt', content: 'three\n', append: true })).toEqual(['   one', '   two', '  +three'])
    const same = await shownAction(stage.folder, pending('write', { path: 'a.txt', content: 'one\ntwo\n' }))
    expect(same).toMatchObject({ title: 'write a.txt · nothing would change', type: 'arguments' })
  })

  it('B-TALK-5: edits are shown together, each on what the earlier ones made', async () => {
    stage.write('work/a.txt', 'one\ntwo\n')
    const edits = [
      { path: 'a.txt', old_string: 'two', new_string: 'deux' },
      { path: './a.txt', old_string: 'deux', new_string: '$& drei' },
    ]
    const { title, rows } = await shownAction(stage.folder, pending('edit', { edits }))
    expect(title).toMatch(/· \+1 −1$/)
    expect(rows.slice(3)).toEqual(['   one', '  -two', '  +$& drei'])
  })

  it('B-TALK-5: what would fail is said, with the arguments as they are, and nothing outside is read', async () => {
    stage.write('work/a.txt', 'one one\n')
    stage.write('secret.txt', 'the secret')
    const edit = (path: string, old_string: string) => ({ edits: [{ path, old_string, new_string: 'x' }] })
    for (const [args, why] of [
      [edit('a.txt', 'two'), 'is not in a.txt'],
      [edit('a.txt', 'one'), 'is in a.txt 2 times'],
      [edit('b.txt', 'one'), 'there is no b.txt'],
      [edit('../secret.txt', 'the'), 'out of bounds'],
    ] as const) {
      const { rows, type } = await shownAction(stage.folder, pending('edit', args))
      expect(type).toBe('arguments')
      expect(rows[0]).toContain(why)
      expect(rows.join('\n')).not.toContain('the secret')
    }
  })

  it('B-TALK-5: any other call is shown with its exact arguments, and nothing in it reaches the terminal as it is', async () => {
    const bash = await shownAction(stage.folder, pending('bash', { command: 'echo \u001b[2J; rm -rf x' }))
    expect(bash).toMatchObject({ type: 'arguments', rows: ['  command: echo \\u{1b}[2J; rm -rf x'] })
    const evil = await shownAction(stage.folder, pending('write', { path: 'a', content: 'x\u001b[2J\u202e\r\n' }))
    expect(evil.rows.at(-1)).toBe('  +x\\u{1b}[2J\\u{202e}\\u{d}')
  })

  it('B-TALK-5: what is too long is clipped aloud, with its end', () => {
    const rows = [...Array(100).keys()].map((n) => `  +${n}`)
    const some = clippedRows(rows, 10, 80) ?? []
    expect(some).toHaveLength(11)
    expect(some[7]).toBe('  [… 90 of 100 lines are not shown here …]')
    expect(some.at(-1)).toBe('  +99')
    expect(clippedRows(rows.slice(0, 10), 10, 80)).toBeNull()
    const wide = clippedRows([`  +${'a'.repeat(5_000)}; rm -rf ~`], 10, 80) ?? []
    expect(wide.join('\n')).toMatch(/5013 characters in this line[\s\S]*rm -rf ~$/)
  })

  it('B-TALK-4: a call is told by what it is about', () => {
    expect(aboutOf({ tool: 'search', args: { pattern: 'foo\nbar', path: 'src' } })).toBe('search "foo ⏎ bar"')
    expect(aboutOf({ tool: 'glob', args: { pattern: '*.ts' } })).toBe('glob "*.ts"')
    expect(aboutOf({ tool: 'bash', args: { command: 'ls \u001b[2J' } })).toBe('bash ls \\u{1b}[2J')
    expect(aboutOf({ tool: 'x', args: { n: 1 } })).toBe('x {"n":1}')
  })
})

describe('a word', () => {
  it('B-TALK-7: only a plain yes is one; after a no comes the reason; nothing means later', () => {
    const types = (...words: readonly (string | null)[]) => words.map((word) => wordOf(word).type)
    expect(types('y', 'Yes', ' y ')).toEqual(['yes', 'yes', 'yes'])
    expect(types('yesterday', 'y or n', 'ok', 'sure', 'yy', 'a b')).toEqual(Array(6).fill('unclear'))
    expect(types('', null, 'l', 'later')).toEqual(Array(4).fill('later'))
    expect(types('a', 'd')).toEqual(['all', 'whole'])
    expect(wordOf('no, use another name')).toEqual({ type: 'no', why: 'use another name' })
    expect(wordOf('n')).toEqual({ type: 'no', why: '' })
  })
})

describe('what was said before', () => {
  const home = () => homeOf({ TERRET_HOME: stage.home })

  it('B-TALK-14: is kept for its folder, for its owner alone, and never with a secret', () => {
    makeHome(home())
    const secrets = { SOME_API_KEY: 'sk-0123456789abcdef' }
    const history = openHistory(home(), '/one', secrets)
    for (const text of ['hello', 'hello', 'two\nlines', 'my key is sk-0123456789abcdef', '  ']) history.add(text)
    expect(openHistory(home(), '/one', secrets).entries).toEqual(['hello', 'two\nlines'])
    expect(openHistory(home(), '/two', secrets).entries).toEqual([])
    const [file = ''] = filesIn(join(stage.home, 'history'))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain('sk-')
  })

  it('B-TALK-14: the last 1,000 entries count, and a damaged line costs only itself', () => {
    makeHome(home())
    const history = openHistory(home(), '/one', {})
    for (let n = 1; n <= 2_100; n += 1) history.add(`entry ${n}`)
    expect(history.entries).toHaveLength(1_000)
    const again = openHistory(home(), '/one', {})
    expect([again.entries.length, again.entries[0], again.entries.at(-1)]).toEqual([1_000, 'entry 1101', 'entry 2100'])
    const [file = ''] = filesIn(join(stage.home, 'history'))
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(1_000)
    stage.write(`data/history/${file.split('/').at(-1)}`, '"good"\n{"bad"\n"also good"\n')
    expect(openHistory(home(), '/one', {}).entries).toEqual(['good', 'also good'])
  })
})
