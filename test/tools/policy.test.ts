// The policy: what is let through, what is asked, what is denied, and that doubt never lets anything through.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Event, Harness, type Result, scripted } from '../../src/index.ts'
import { matchesPath, matchesText } from '../../src/tools/policy/pattern.ts'
import { matchesWords } from '../../src/tools/policy/command-pattern.ts'
import {
  type PolicyAction,
  describeRule,
  judge,
  judgeCall,
  parsePolicy,
  type Policy,
  rememberedRule,
  type Rule,
} from '../../src/tools/policy/policy.ts'

const action = (
  tool: string,
  args: PolicyAction['args'] = {},
  approval: PolicyAction['approval'] = 'auto',
): PolicyAction => ({
  tool,
  args,
  approval,
})
const policy = (...rules: readonly Rule[]): Policy => ({ rules })

describe('the policy', () => {
  it('B-POLICY-1: denies before it asks and asks before it allows, whatever the order of the rules', async () => {
    const rules: readonly Rule[] = [
      { effect: 'allow' },
      { effect: 'ask', tool: 'bash' },
      { effect: 'deny', command: 'rm *' },
    ]
    expect(judge(policy(...rules), action('read')).type).toBe('allow')
    expect((await judgeCall(policy(...rules), action('bash', { command: 'ls' }))).type).toBe('ask')
    expect((await judgeCall(policy(...rules), action('bash', { command: 'rm -rf x' }))).type).toBe('deny')
  })

  it('B-POLICY-2: without a rule the tool decides itself; where no person can be asked a question counts as a no', () => {
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
      gate: { type: 'ask', class: 'release', n: 2, roles: ['operator'], each: true },
      expiresMs: 60_000,
    })
  })

  it('B-POLICY-4: a command that a shell would do more with than split is never allowed by a rule, and still denied by one', async () => {
    const rules = policy({ effect: 'allow', command: 'echo *' }, { effect: 'ask' })
    const only = async (command: string) => {
      const allow = policy({ effect: 'allow', command: 'echo *' }, { effect: 'deny', tool: 'never' })
      return (await judgeCall(allow, action('bash', { command }, 'ask'))).type
    }
    expect((await judgeCall(rules, action('bash', { command: 'echo hi' }))).type).toBe('ask')
    expect(await only('echo hi there')).toBe('allow')
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
      expect([command, await only(command)]).toEqual([command, 'ask'])
    }
    const any = policy({ effect: 'allow', command: ['*', '* echo *'] })
    for (const command of ['echo a; id', '$(id)', ' X=1 echo a', 'X+=1 echo a']) {
      expect([command, (await judgeCall(any, action('bash', { command }, 'ask'))).type]).toEqual([command, 'ask'])
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
      expect([command, (await judgeCall(deny, action('bash', { command }))).type]).toEqual([command, 'deny'])
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
    const based = (rule: Rule, path: string) => type({ rules: [rule], base: '/home/me/ws' }, [path])
    const secret = { effect: 'deny', path: '/home/me/ws/secret/**' } as const
    for (const path of ['secret/a.txt', './b/../secret/a.txt', '../ws/secret/a.txt', '/home/me/ws/secret/a.txt'])
      expect([path, based(secret, path)]).toEqual([path, 'deny'])
    for (const path of ['a.txt', 'other/secret/a.txt', '../secret/a.txt'])
      expect([path, based(secret, path)]).toEqual([path, 'ask'])
    expect(based({ effect: 'allow', path: '/home/me/ws/**' }, 'src/a.ts')).toBe('allow')
    expect(based({ effect: 'allow', path: '/home/me/ws/**' }, '../ws-evil/a.ts')).toBe('ask')
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
    expect(() => parsePolicy({ rules: [{ effect: 'alow' }] })).toThrow('"effect" of rule 1')
    expect(() => parsePolicy({ rules: [{ effect: 'deny', tols: 'x' }] })).toThrow(
      'Unknown option "tols" of rule 1 of the policy',
    )
    expect(() => parsePolicy({ rule: [] })).toThrow('Unknown option "rule" of the policy: did you mean "rules"?')
    expect(() => parsePolicy({ rules: [{ effect: 'ask', n: 0 }] })).toThrow('whole number')
    expect(parsePolicy({ rules: [{ effect: 'deny', tool: ['a', 'b'] }], onAsk: 'deny' }).rules).toHaveLength(1)
  })

  it('B-POLICY-7: a field that is not what it must be, or would do nothing, is refused by its name', () => {
    const fields: Readonly<Record<string, readonly unknown[]>> = {
      tool: ['', [], [''], 5, { name: 'x' }],
      path: [[], null, [5]],
      command: ['', {}],
      args: [['x'], { count: 5 }, {}, 'x', null],
      exact: [['x'], 'x', null],
      environment: [['production'], '', 5],
      class: [5, ''],
      n: ['2', 0, 1.5, Number.NaN, 2 ** 60],
      roles: ['operator', [], [''], [5]],
      expiresMs: ['3600000', 0, -1, 0.5, Number.POSITIVE_INFINITY],
      reason: [5, ''],
    }
    const rules = Object.entries(fields).flatMap(([field, values]) => values.map((value) => ({ field, value })))
    for (const { field, value } of rules) {
      const policy = { rules: [{ effect: 'allow' }, { effect: 'ask', [field]: value }] }
      expect(() => parsePolicy(policy)).toThrow(`The option "${field}" of rule 2 of the policy must be`)
    }
    for (const rule of [null, [], 'deny']) expect(() => parsePolicy({ rules: [rule] })).toThrow('must be an object')
    for (const field of ['class', 'roles', 'n', 'expiresMs'] as const) {
      const given = { class: 'release', roles: ['operator'], n: 2, expiresMs: 1 }[field]
      expect(() => parsePolicy({ rules: [{ effect: 'allow', [field]: given }] })).toThrow('for a rule that asks')
    }
    expect(() => parsePolicy({ rules: [], base: 'srv' })).toThrow('"base" must be')
    expect(() => parsePolicy({ rules: [], asksPerHour: '3' })).toThrow('"asksPerHour"')
  })

  it('B-POLICY-28: a reason is for a rule that denies: a rule that asks or allows is refused with one, since nobody would read it', () => {
    for (const effect of ['ask', 'allow'])
      expect(() => parsePolicy({ rules: [{ effect, tool: 'edit', reason: 'It is late.' }] })).toThrow(
        'rule 1 of the policy: "reason" is for a rule that denies, and this one does not. Leave it out.',
      )
    const denies = parsePolicy({ rules: [{ effect: 'deny', tool: 'edit', reason: 'It is late.' }] })
    expect(judge(denies, action('edit', {}))).toEqual({
      type: 'deny',
      reason: 'Tool "edit" is denied by policy: It is late.',
    })
  })

  it('B-POLICY-21: a path is known by the name of its field, or by how it looks where the name may mean something else', () => {
    const deny = policy({ effect: 'deny', path: 'important.txt' })
    const denied = (args: PolicyAction['args']): boolean => judge(deny, action('act', args)).type === 'deny'
    const named = ['path', 'paths', 'file_path', 'filePath', 'output_file', 'filename', 'source', 'destination']
    const fields = [...named, 'from', 'to', 'target', 'newFile', 'FILE', 'path2']
    expect(fields.filter((field) => !denied({ deep: [{ [field]: 'important.txt' }] }))).toEqual([])
    expect(fields.filter((field) => !denied({ [field]: ['a', '/srv/Important.txt'] }))).toEqual([])
    expect(denied({ text: 'important.txt', profile: 'important.txt' })).toBe(false)
    const docs = policy({ effect: 'allow', path: 'docs/**' })
    const allowed = (args: PolicyAction['args']): boolean => judge(docs, action('act', args, 'ask')).type === 'allow'
    const words = ['2026-02-01', '1/2/2026', 'ana@example.com', 'https://example.com/a', 'ana', '09:30']
    expect(words.filter((word) => !allowed({ path: 'docs/a', to: word, from: word }))).toEqual([])
    const paths = ['/etc/passwd', '..', '../a', 'a/b', '~/a', 'a.txt', 'file:///etc/passwd', '1/../..']
    expect(paths.filter((path) => allowed({ path: 'docs/a', to: path }))).toEqual([])
    expect(allowed({ source: 'docs/a', destination: 'Makefile' })).toBe(false)
  })

  it('B-POLICY-21: with `writeRoots` whatever can only be a place on this machine counts, unless the tool only reads', () => {
    const roots: Policy = { rules: [], writeRoots: ['/srv/out'], base: '/srv/out' }
    const verdict = (args: PolicyAction['args'], effect: PolicyAction['effect'] = 'once') =>
      judge(roots, { ...action('act', args), effect }).type
    const outside = ['/etc/passwd', '~/.bashrc', 'file:///etc/passwd', 'file:x', '/srv/out/../x', '/']
    expect(outside.filter((place) => verdict({ whatever: place }) !== 'deny')).toEqual([])
    expect(outside.filter((place) => verdict({ list: [{ name: place }] }) !== 'deny')).toEqual([])
    expect(outside.filter((place) => verdict({ whatever: place }, 'read') !== 'allow')).toEqual([])
    expect(verdict({ source: 'a', destination: '/srv/a' })).toBe('deny')
    for (const place of ['/srv/out/a', 'file:///srv/out/a', 'a/b']) expect(verdict({ whatever: place })).toBe('allow')
    // What is written is no place, whatever it begins with.
    const texts = { content: '/etc/passwd', old_string: '/a', newText: '/a', command: '/bin/ls', pattern: '/a' }
    expect(verdict({ path: 'a', ...texts, more: '/* a comment\n*/' })).toBe('allow')
  })

  it('B-POLICY-24: what is said of a rule that asks names its class, people, roles and time', () => {
    const rule: Rule = {
      effect: 'ask',
      tool: 'edit',
      class: 'release',
      n: 2,
      roles: ['operator', 'lead'],
      expiresMs: 5,
    }
    expect(describeRule(rule)).toBe('ask tool edit, class release, 2 approvals, by operator or lead, within 5 ms')
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
    const harness = new Harness({
      model: scripted(script),
      tools: [put],
      approvals: { policy: { rules }, environment },
    })
    const result = await harness.run('go')
    const { events } = await harness.session(result.sessionId).events()
    await harness.close()
    return { ran, result, events }
  }

  it('B-POLICY-11: a denial is a result the model reads, is recorded, and nothing runs (AC-107)', async () => {
    const { ran, result, events } = await run([
      { effect: 'deny', tool: 'put', path: 'docs/**', reason: 'docs are frozen' },
    ])
    expect({ ran, status: result.status }).toEqual({ ran: 0, status: 'completed' })
    expect(events.find((event) => event.type === 'agent.tool_result')).toMatchObject({
      status: 'denied',
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
        approvals: { policy: { rules } },
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
    expect(() => new Harness({ model: scripted([]), approvals: { policy } })).toThrow(
      'The option "effect" of rule 1 of the policy must be',
    )
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
          const given = [...rule, ...rest]
          const other = [...rule.slice(0, -1), `${rule.at(-1)}x`, ...rest]
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
