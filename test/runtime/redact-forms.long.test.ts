// The spellings in which known secrets are found, made by the programs that people use, and what is left alone.
import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Redactor } from '../../src/runtime/redact/redactor.ts'
import { runs } from '../runs.ts'

const TOKEN = `sk-live/+"'\\ü$9fQ7w~x&<2>`
const LINES = Array.from({ length: 12 }, (_, i) =>
  Buffer.from(`${i * 7919}-${i * 104_729}-${i}-abcdefghijklmnop`.repeat(2))
    .toString('base64')
    .slice(0, 64),
)
const PEM = ['-----BEGIN PRIVATE KEY-----', ...LINES, '-----END PRIVATE KEY-----', ''].join('\n')
const LONG = 'Zq8RkT5vXw2YbN7mLpJ4sHgD9fCxKe3A'
const redactor = new Redactor({ TOKEN, PEM, LONG })

/** What a real program makes of the secret: asked once for all tests. */
const made = (command: string) => {
  const known = new Map<string, string>()
  return (secret: string): string => {
    const text = known.get(secret) ?? spawnSync('bash', ['-c', command], { input: secret, encoding: 'utf8' }).stdout
    known.set(secret, text)
    return text
  }
}
const inRows = made('base64 -w64')

const json = (value: string): string => JSON.stringify(value)
const FORMS: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => `a ${secret} b`,
  'in JSON': (secret) => json({ a: secret } as unknown as string),
  'in JSON in JSON': (secret) => json(json(secret)),
  'in JSON in JSON in JSON': (secret) => json(json(json(secret))),
  'in JSON of ASCII': (secret) =>
    json(secret).replace(/[\x7f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'quoted by Python': made('python3 -c "import sys; print(repr(sys.stdin.read()))"'),
  'quoted by Python, as bytes': made('python3 -c "import sys; print(repr(sys.stdin.buffer.read()))"'),
  'quoted by bash': made(`IFS= read -r -d '' x; printf '%q' "$x"`),
  'in single quotes of a shell': (secret) => `'${secret.replaceAll("'", `'"'"'`)}'`,
  'in an address': (secret) => encodeURIComponent(secret),
  'in an address in small letters': (secret) =>
    encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
  'in an address in an address': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'in HTML': (secret) =>
    secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;'),
  'in base64': (secret) => Buffer.from(secret).toString('base64'),
  'in base64 behind other text': (secret) => Buffer.from(`user:${secret}`).toString('base64'),
  'in base64 for addresses': (secret) => Buffer.from(`x${secret}`).toString('base64url'),
  'in rows of base64': made('base64 -w76'),
  'in short rows of base64': made('base64 -w20'),
  'in rows of base64 with numbers': made('base64 -w76 | cat -n'),
  'in rows of base64 in JSON': (secret) => json(inRows(secret)),
  'in hexadecimal': (secret) => Buffer.from(secret).toString('hex'),
  'in capital hexadecimal with colons': (secret) =>
    (Buffer.from(secret).toString('hex').toUpperCase().match(/../g) ?? []).join(':'),
  'in UTF-16': (secret) => secret.split('').join('\0'),
  'in base64 of UTF-16': (secret) => Buffer.from(secret, 'utf16le').toString('base64'),
  'with numbers of lines': made('cat -n'),
  'with names and numbers': made('grep -Hn ""'),
  'as a diff': (secret) =>
    secret
      .split('\n')
      .map((line) => `+${line}`)
      .join('\n'),
  'quoted in a mail': (secret) =>
    secret
      .split('\n')
      .map((line) => `> ${line}`)
      .join('\n'),
  folded: made('fold -w 10'),
}
const DUMPS: Readonly<Record<string, (secret: string) => string>> = {
  'by od': made('od'),
  'by od in letters': made('od -c'),
  'by od in bytes': made('od -An -tx1'),
  'by od in words': made('od -x'),
  'by od in octal bytes': made('od -b'),
  'by od in long words': made('od -An -tx4'),
  'by od, with letters behind': made('od -A x -t x1z'),
  'by xxd': (secret) => dump(secret, 2, (text) => text),
  'by hexdump': (secret) => dump(secret, 1, (text) => `|${text}|`),
}

/** As xxd and hexdump -C print it. */
function dump(secret: string, group: number, behind: (text: string) => string): string {
  const bytes = Buffer.from(secret)
  return Array.from({ length: Math.ceil(bytes.length / 16) }, (_, i) => {
    const row = bytes.subarray(i * 16, i * 16 + 16)
    const words = row.toString('hex').match(new RegExp(`.{1,${group * 2}}`, 'g')) ?? []
    const text = row.toString('latin1').replace(/[^ -~]/g, '.')
    return `${(i * 16).toString(16).padStart(8, '0')}: ${words.join(' ').padEnd(40)}  ${behind(text)}`
  }).join('\n')
}

/** Letters of the secret that stand in a row, in any of the ways that a reader sees at once. */
function left(shown: string, secret: string): string | null {
  const plain = (text: string): string => text.replace(/[\s"'\\\0]/g, '')
  const secretive = secret
    .split('\n')
    .filter((line) => !line.startsWith('-----'))
    .join('\n')
  const forms = [
    secretive,
    Buffer.from(secretive).toString('base64'),
    Buffer.from(secretive).toString('hex'),
    ...secretive.split('\n'),
  ]
  for (const form of forms.map(plain)) {
    for (let at = 0; at + 12 <= form.length; at += 1) {
      const part = form.slice(at, at + 12)
      if (plain(shown).toLowerCase().includes(part.toLowerCase())) return part
    }
  }
  return null
}

const SECRETS = { TOKEN, PEM, LONG }
const names = Object.keys(SECRETS) as (keyof typeof SECRETS)[]
const cases = (forms: typeof FORMS) => Object.keys(forms).flatMap((form) => names.map((name) => [form, name] as const))

describe('the spellings of a secret', () => {
  it.each(cases({ ...FORMS, ...DUMPS }))('B-SECRET-9: a secret %s is found: %s', (form, name) => {
    const make = FORMS[form] ?? DUMPS[form]
    const shown = redactor.text(`before\n${make?.(SECRETS[name]) ?? ''}\nafter`)
    expect(shown).toContain(`⟦secret:${name}⟧`)
    expect(left(shown, SECRETS[name])).toBeNull()
    expect(shown).toMatch(/^before\n[^]*\nafter$/)
  })

  it.each(cases(FORMS))(
    'B-SECRET-6: in whatever pieces a secret %s comes, the stream shows what the whole shows: %s',
    (form, name) => {
      const text = `before\n${FORMS[form]?.(SECRETS[name]) ?? ''}\nafter`
      const whole = redactor.text(text)
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }), (sizes) => {
          const stream = redactor.stream()
          let said = ''
          for (let at = 0, i = 0; at < text.length; i++) {
            const size = sizes[i % sizes.length] ?? 1
            said += stream.push(text.slice(at, at + size))
            at += size
          }
          return said + stream.end() === whole
        }),
        { numRuns: 15, seed: 3 },
      )
    },
  )

  it('B-SECRET-10: a redacted text has as many lines as before, so numbers of lines stay true', () => {
    const text = `one\n${PEM}two\n${TOKEN}\nthree`
    expect(redactor.text(text).split('\n')).toHaveLength(text.split('\n').length)
  })

  it('B-SECRET-11: other text stays as it is', () => {
    for (const text of [
      '-----BEGIN PRIVATE KEY-----',
      'sk-live is the beginning of a key',
      'deadbeef cafe 0000 1234 5678\n00000000: 7365 6372  secr',
      '"a" \'b\' \\n \\u0041 %41 &amp; \\x41 %',
      Buffer.from('something else entirely, and long enough').toString('base64'),
    ]) {
      expect(redactor.text(text)).toBe(text)
    }
  })

  it('B-SECRET-12: a value that cannot be told from other text is refused with a sentence, and not taken from the environment', () => {
    for (const value of ['short', '********', 'abababababab'])
      expect(() => new Redactor({ X: value })).toThrow(/The secret X .*cannot be told from other text/)
  })

  it.each([
    '\\',
    '%',
    '&',
    ' ',
    '"',
    `${TOKEN.slice(0, -1)}`,
    '00 ',
    '0000000 ',
    '\\u',
    '%25',
    ' \n',
    Buffer.from(LONG).toString('base64').slice(0, 20),
  ])('B-SECRET-13: reads a long text of many %j once', (piece) => {
    const text = piece.repeat(runs(2_000_000) / piece.length)
    expect(redactor.text(text)).toBe(text)
    const stream = redactor.stream()
    let chars = 0
    for (let at = 0; at < 20_000; at += 10) chars += stream.push(text.slice(at, at + 10)).length
    expect(chars + stream.end().length).toBe(20_000)
  })
})
