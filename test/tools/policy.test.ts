// The policy: what is let through, what is asked, what is denied, and that doubt never lets anything through.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Event, Harness, type Result, scripted } from '../../src/index.ts'
import { matchesPath, matchesText, matchesWords, plainWords } from '../../src/tools/pattern.ts'
import {
  type Action,
  describeRule,
  judge,
  parsePolicy,
  type Policy,
  rememberedRule,
  type Rule,
} from '../../src/tools/policy.ts'

const action = (tool: string, args: Action['args'] = {}, approval: Action['approval'] = 'auto'): Action => ({
  tool,
  args,
  approval,
})
const policy = (...rules: readonly Rule[]): Policy => ({ rules })

describe('the policy', () => {
  it('B-POLICY-1: denies before it asks and asks before it allows, whatever the order of the rules', () => {
    const rules: readonly Rule[] = [
      { effect: 'allow' },
      { effect: 'ask', tool: 'bash' },
      { effect: 'deny', command: 'rm *' },
    ]
    expect(judge(policy(...rules), action('read')).type).toBe('allow')
    expect(judge(policy(...rules), action('bash', { command: 'ls' })).type).toBe('ask')
    expect(judge(policy(...rules), action('bash', { command: 'rm -rf x' })).type).toBe('deny')
  })

  it('B-POLICY-2: without a rule the tool decides itself; where nobody can be asked a question counts as a no', () => {
    expect(judge(policy(), action('publish', {}, 'ask'))).toMatchObject({
      type: 'ask',
      gate: { class: 'publish', n: 1 },
    })
    expect(judge({ rules: [], onAsk: 'deny' }, action('publish', {}, 'ask')).type).toBe('deny')
    expect(judge(policy(), action('read')).type).toBe('allow')
  })

  it('B-POLICY-3: an ask rule says which kind of approval, how many people and of which roles', () => {
    const rule: Rule = { effect: 'ask', tool: 'deploy', class: 'release', n: 2, roles: ['operator'], expiresMs: 60_000 }
    expect(judge(policy(rule), action('deploy'))).toEqual({
      type: 'ask',
      gate: { type: 'ask', class: 'release', n: 2, roles: ['operator'] },
      expiresMs: 60_000,
    })
  })

  it('B-POLICY-4: a command that a shell would do more with than split is never allowed by a rule, and still denied by one', () => {
    const rules = policy({ effect: 'allow', command: 'echo *' }, { effect: 'ask' })
    const only = (command: string) =>
      judge(
        policy({ effect: 'allow', command: 'echo *' }, { effect: 'deny', tool: 'never' }),
        action('bash', { command }, 'ask'),
      ).type
    expect(judge(rules, action('bash', { command: 'echo hi' })).type).toBe('ask')
    expect(only('echo hi there')).toBe('allow')
    for (const command of [
      'echo x > ~/.bashrc',
      'echo $(id)',
      'echo `id`',
      'echo a; id',
      'echo a && id',
      'echo a | sh',
      'echo a\nid',
      'X=1 echo a',
      'echo "$HOME"',
      'echo a &',
    ]) {
      expect([command, only(command)]).toEqual([command, 'ask'])
    }
    const any = policy({ effect: 'allow', command: ['*', '* echo *'] })
    for (const command of ['echo a; id', '$(id)', ' X=1 echo a', 'X+=1 echo a']) {
      expect([command, judge(any, action('bash', { command }, 'ask')).type]).toEqual([command, 'ask'])
    }
    const deny = policy({ effect: 'deny', command: 'git push *' })
    for (const command of [
      'git push -f',
      'true; git push',
      'sh -c "git push"',
      'sudo git push',
      '(git push)',
      'echo $(git push)',
      'x=`git push`',
      "g'it' pu\\sh",
    ]) {
      expect([command, judge(deny, action('bash', { command })).type]).toEqual([command, 'deny'])
    }
  })

  it('B-POLICY-5: paths match segment by segment; all must match to allow, one is enough to deny, and one that climbs out is never allowed', () => {
    const allow = policy({ effect: 'allow', path: 'src/**' })
    const type = (rules: Policy, paths: readonly string[]) =>
      judge(rules, action('edit', { edits: paths.map((path) => ({ path })) }, 'ask')).type
    expect(type(allow, ['src/a.ts', 'src/b/c.ts'])).toBe('allow')
    expect(type(allow, ['src/a.ts', 'docs/a.md'])).toBe('ask')
    expect(type(allow, ['src-evil/a.ts'])).toBe('ask')
    expect(type(allow, ['src/../../etc/passwd'])).toBe('ask')
    expect(type(policy({ effect: 'deny', path: '.git/**' }), ['src/a.ts', '.git/hooks/x'])).toBe('deny')
    expect(type(policy({ effect: 'deny', path: '.git/**' }), ['../x'])).toBe('deny')
    expect(type(policy({ effect: 'deny', path: '.git/**' }), ['/home/me/ws/.git/config'])).toBe('deny')
    expect(type(policy({ effect: 'deny', path: '.git/**' }), ['sub/.GIT/config'])).toBe('deny')
    expect(type(policy({ effect: 'deny', path: '**' }), ['.'])).toBe('deny')
    const byArgument = policy({ effect: 'allow', args: { 'edits.path': 'src/*' } })
    expect(type(byArgument, ['src/a.ts', '/etc/passwd'])).toBe('ask')
    expect(type(byArgument, ['src/a.ts', 'src/b.ts'])).toBe('allow')
  })

  it('B-POLICY-6: a remembered rule lets the same action through and nothing else, and says in words what it will match', () => {
    const kept = rememberedRule(action('bash', { command: 'npm test', timeout_ms: 5 }))
    expect(describeRule(kept)).toBe('allow tool bash, command is "npm test", timeout_ms is 5, and nothing else')
    expect(judge(policy(kept), action('bash', { command: 'npm test', timeout_ms: 5 }, 'ask')).type).toBe('allow')
    for (const command of ['npm exec evil', 'npm test; id', 'npm  test']) {
      expect(judge(policy(kept), action('bash', { command, timeout_ms: 5 }, 'ask')).type).toBe('ask')
    }
    for (const args of [
      { command: 'npm test' },
      { command: ['npm test'], timeout_ms: 5 },
      { command: 'npm test', timeout_ms: 5, network: true },
    ]) {
      expect(judge(policy(kept), action('bash', args, 'ask')).type).toBe('ask')
    }
    const starred = policy(rememberedRule(action('bash', { command: 'rm *' })))
    expect(judge(starred, action('bash', { command: 'rm *' }, 'ask')).type).toBe('allow')
    expect(judge(starred, action('bash', { command: 'rm -rf /' }, 'ask')).type).toBe('ask')
  })

  it('B-POLICY-7: a policy that is not understood is refused and says where', () => {
    expect(() => parsePolicy({ rules: [{ effect: 'alow' }] })).toThrow('rule 1 needs "effect"')
    expect(() => parsePolicy({ rules: [{ effect: 'deny', tols: 'x' }] })).toThrow('rule 1 has "tols"')
    expect(() => parsePolicy({ rule: [] })).toThrow('"rule" is not known')
    expect(() => parsePolicy({ rules: [{ effect: 'ask', n: 0 }] })).toThrow('whole number')
    expect(parsePolicy({ rules: [{ effect: 'deny', tool: ['a', 'b'] }], onAsk: 'deny' }).rules).toHaveLength(1)
  })
})

describe('the policy of a harness', () => {
  const input = z.object({ path: z.string() })
  const script = [{ calls: [{ tool: 'put', args: { path: 'docs/a.md' } }] }, 'done']

  async function run(
    rules: readonly Rule[],
    environment = 'here',
  ): Promise<{ readonly ran: number; readonly result: Result; readonly events: readonly Event[] }> {
    let ran = 0
    const put = defineTool({ name: 'put', description: 'put', input, effect: 'idempotent', execute: () => ++ran })
    const harness = new Harness({ model: scripted(script), tools: [put], policy: { rules }, environment })
    const result = await harness.run('go')
    const { events } = await harness.session(result.sessionId).read()
    await harness.close()
    return { ran, result, events }
  }

  it('B-POLICY-11: a denial is a result the model reads, is recorded, and nothing runs (AC-107)', async () => {
    const { ran, result, events } = await run([
      { effect: 'deny', tool: 'put', path: 'docs/**', reason: 'docs are frozen' },
    ])
    expect({ ran, status: result.status }).toEqual({ ran: 0, status: 'completed' })
    expect(events.find((event) => event.type === 'agent.tool_result')).toMatchObject({
      status: 'error',
      content: 'Tool "put" is denied by policy: docs are frozen',
      failure: { kind: 'Denied' },
    })
  })

  it('B-POLICY-12: an ask rule parks the run with its class, people and roles; another environment is not touched by it', async () => {
    const rule: Rule = {
      effect: 'ask',
      tool: 'put',
      environment: 'production',
      class: 'release',
      n: 2,
      roles: ['operator'],
    }
    expect((await run([rule])).ran).toBe(1)
    const { ran, result, events } = await run([rule], 'production')
    expect({ ran, status: result.status }).toEqual({ ran: 0, status: 'requires_action' })
    expect(events.find((event) => event.type === 'agent.message')).toMatchObject({
      calls: [{ gate: { class: 'release', n: 2, roles: ['operator'] } }],
    })
  })

  it('B-POLICY-13: a tool may ask by its arguments; a rule that allows speaks first', async () => {
    const risky = defineTool({
      name: 'risky',
      description: 'risky',
      input,
      approval: ({ path }) => (path === 'a' ? 'auto' : 'ask'),
      execute: () => 'done',
    })
    const status = async (path: string, rules: readonly Rule[]): Promise<string> => {
      const harness = new Harness({
        model: scripted([{ calls: [{ tool: 'risky', args: { path } }] }, 'done']),
        tools: [risky],
        policy: { rules },
      })
      const result = await harness.run('go')
      await harness.close()
      return result.status
    }
    expect([await status('a', []), await status('b', []), await status('b', [{ effect: 'allow', path: 'b' }])]).toEqual(
      ['completed', 'requires_action', 'completed'],
    )
  })

  it('B-POLICY-14: a harness with a policy that is not understood is not made', () => {
    const policy = { rules: [{ effect: 'alow' }] } as unknown as Policy
    expect(() => new Harness({ model: scripted([]), policy })).toThrow('The policy is not valid')
  })
})

describe('patterns', () => {
  it('B-POLICY-8: a pattern without a star matches itself alone, and a star matches any run of characters', () => {
    const text = fc.string().filter((s) => !s.includes('*'))
    fc.assert(fc.property(text, text, (a, b) => matchesText(a, b) === (a === b)))
    fc.assert(fc.property(text, text, text, (a, b, c) => matchesText(`${a}*${c}`, `${a}${b}${c}`)))
  })

  it('B-POLICY-9: a command rule never matches a command whose first differing word is not a wildcard of the rule', () => {
    const word = fc.stringMatching(/^[a-z0-9./-]{1,6}$/)
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 4 }),
        fc.array(word, { maxLength: 4 }),
        fc.boolean(),
        (rule, rest, open) => {
          const pattern = [...rule, ...(open ? ['*'] : [])].join(' ')
          const given = plainWords([...rule, ...rest].join(' ')) ?? []
          const other = plainWords([...rule.slice(0, -1), `${rule.at(-1)}x`, ...rest].join(' ')) ?? []
          expect(matchesWords(pattern, given)).toBe(open || rest.length === 0)
          expect(matchesWords(pattern, other)).toBe(false)
        },
      ),
    )
  })

  it('B-POLICY-10: no allowed path leaves its pattern root, for any mix of dots, slashes and names', () => {
    const segment = fc.constantFrom('..', '.', '', 'src', 'a', 'src-evil', '...')
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 8 }), (segments) => {
        const path = segments.join('/')
        if (!matchesPath('src/**', path)) return
        const resolved: string[] = []
        for (const part of segments) {
          if (part === '..') resolved.pop()
          else if (part !== '' && part !== '.') resolved.push(part)
        }
        expect(resolved[0]).toBe('src')
      }),
    )
  })
})
