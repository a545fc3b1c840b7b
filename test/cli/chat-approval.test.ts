// How a call is told in one line, what counts as a yes, and what is kept of what was said.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseReply } from '../../src/cli/present/ask-approval.ts'
import { callSubject } from '../../src/cli/present/blocks.ts'
import { openInputHistory } from '../../src/cli/chat/input-history.ts'
import { findHome, makeHome } from '../../src/cli/state/cli-home.ts'
import { openStage, type Stage } from './stage.ts'

let stage: Stage
beforeEach(() => {
  stage = openStage()
})
afterEach(() => stage.close())

const filesIn = (folder: string): readonly string[] => readdirSync(folder).map((name) => join(folder, name))

describe('a call', () => {
  it('B-TALK-4: a call is told by what it is about', () => {
    expect(callSubject({ tool: 'search', args: { pattern: 'foo\nbar', path: 'src' } })).toBe('search "foo ⏎ bar"')
    expect(callSubject({ tool: 'glob', args: { pattern: '*.ts' } })).toBe('glob "*.ts"')
    expect(callSubject({ tool: 'bash', args: { command: 'ls \u001b[2J' } })).toBe('bash ls \\u{1b}[2J')
    expect(callSubject({ tool: 'x', args: { n: 1 } })).toBe('x {"n":1}')
  })
})

describe('a word', () => {
  it('B-TALK-7: only a plain yes is one; after a no comes the reason; nothing means later', () => {
    const types = (...words: readonly (string | null)[]) => words.map((word) => parseReply(word).type)
    expect(types('y', 'Yes', ' y ')).toEqual(['yes', 'yes', 'yes'])
    expect(types('yesterday', 'y or n', 'ok', 'sure', 'yy', 'a b')).toEqual(Array(6).fill('unclear'))
    expect(types('', null, 'l', 'later')).toEqual(Array(4).fill('later'))
    expect(types('a', 'd')).toEqual(['all', 'whole'])
    expect(parseReply('no, use another name')).toEqual({ type: 'no', why: 'use another name' })
    expect(parseReply('n')).toEqual({ type: 'no', why: '' })
  })
})

describe('what was said before', () => {
  const home = () => findHome({ TERRET_HOME: stage.home })

  it('B-TALK-14: is kept for its folder, for its owner alone, and never with a secret', () => {
    makeHome(home())
    const secrets = { SOME_API_KEY: 'sk-0123456789abcdef' }
    const history = openInputHistory(home(), '/one', secrets)
    for (const text of ['hello', 'hello', 'two\nlines', 'my key is sk-0123456789abcdef', '  ']) history.add(text)
    expect(openInputHistory(home(), '/one', secrets).entries).toEqual(['hello', 'two\nlines'])
    expect(openInputHistory(home(), '/two', secrets).entries).toEqual([])
    const [file = ''] = filesIn(join(stage.home, 'history'))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain('sk-')
  })

  it('B-TALK-14: the last 1,000 entries count, and a damaged line costs only itself', () => {
    makeHome(home())
    const history = openInputHistory(home(), '/one', {})
    for (let n = 1; n <= 2_100; n += 1) history.add(`entry ${n}`)
    expect(history.entries).toHaveLength(1_000)
    const again = openInputHistory(home(), '/one', {})
    expect([again.entries.length, again.entries[0], again.entries.at(-1)]).toEqual([1_000, 'entry 1101', 'entry 2100'])
    const [file = ''] = filesIn(join(stage.home, 'history'))
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(1_000)
    stage.write(`data/history/${file.split('/').at(-1)}`, '"good"\n{"bad"\n"also good"\n')
    expect(openInputHistory(home(), '/one', {}).entries).toEqual(['good', 'also good'])
  })
})
