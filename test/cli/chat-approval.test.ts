// How a call is told in one line, what counts as a yes, and what is kept of what was said.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { wordOf } from '../../src/cli/present/approval.ts'
import { aboutOf } from '../../src/cli/chat/call.ts'
import { openHistory } from '../../src/cli/chat/history.ts'
import { homeOf, makeHome } from '../../src/cli/state/home.ts'
import { openStage, type Stage } from './stage.ts'

let stage: Stage
beforeEach(() => {
  stage = openStage()
})
afterEach(() => stage.close())

const filesIn = (folder: string): readonly string[] => readdirSync(folder).map((name) => join(folder, name))

describe('a call', () => {
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
