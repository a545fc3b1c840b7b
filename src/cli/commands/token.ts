// `terret token`: who may ask the server of this data folder. A server that runs sees the change at its next request.
import type { Tokens as KeptTokens } from '../../server/tokens.ts'
import type { Role, TokenBody } from '../../server/wire.ts'
import { type Call, person } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { print, printJson, warn, typed } from '../present/print.ts'
import { inPlace, type Place } from '../state/place.ts'
import { tokenFile } from '../state/served.ts'
import { clientOf } from '../state/far.ts'

export function token(call: Call): Promise<number> {
  const [act = '', name] = call.words
  if (!['make', 'list', 'drop'].includes(act) || (act === 'list') !== (name === undefined))
    throw new Refusal(EXIT.usage, 'Usage: terret token make NAME, terret token list, or terret token drop NAME')
  return inPlace(async (place) => {
    if (clientOf(place.store))
      throw new Refusal(EXIT.usage, 'Tokens are made where the server runs: leave --server out.')
    const [{ Tokens }, { alone }] = await Promise.all([
      import('../../server/tokens.ts'),
      import('../../stores/sqlite/alone.ts'),
    ])
    const tokens = new Tokens(tokenFile(place.home), person(call), alone)
    try {
      if (act === 'list') return printTokens(call, tokens.list())
      if (act === 'drop') tokens.drop(name ?? '')
      else return await made(place, call, tokens, name ?? '')
    } catch (error) {
      const { Refused } = await import('../../server/refusals.ts')
      if (error instanceof Refused)
        throw new Refusal(error.status === 404 ? EXIT.missing : EXIT.conflict, error.message)
      throw error
    }
    if (call.is('json')) printJson({ dropped: name })
    else print(clean(`The token of ${name ?? ''} is no longer good.`))
    return EXIT.ok
  })
}

async function made({ store }: Place, call: Call, tokens: KeptTokens, name: string): Promise<number> {
  const { newToken } = await import('../../server/answers/token-list.ts')
  const row = await newToken(tokens, store, bodyOf(call, name))
  if (call.is('json')) printJson(row)
  else {
    print(row.token)
    warn('It is shown once. It goes into the header "Authorization: Bearer TOKEN", or into TERRET_TOKEN.')
  }
  return EXIT.ok
}

const ROLES: readonly Role[] = ['viewer', 'operator', 'approver', 'admin']

function bodyOf(call: Call, name: string): TokenBody {
  const given = call.text('role') ?? 'viewer'
  const role = ROLES.find((each) => each === given)
  if (role === undefined) throw new Refusal(EXIT.usage, `--role must be one of: ${ROLES.join(', ')}.`)
  const reach = call.text('reach') ?? 'all'
  if (reach !== 'all' && reach !== 'own') throw new Refusal(EXIT.usage, '--reach must be own or all.')
  const roles =
    call
      .text('roles')
      ?.split(',')
      .map((each) => each.trim()) ?? []
  if (roles.includes('')) throw new Refusal(EXIT.usage, '--roles must be names with commas between them.')
  const expires = call.text('expires')
  const over = expires === undefined ? {} : { expiresMs: expiresMsOf(expires) }
  return { name, role, roles, reach, ...over, inherit: call.is('inherit') }
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const EXPIRES_DAYS_MAX = 3_650

export function expiresMsOf(text: string): number {
  const [, amount = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text.trim()) ?? []
  const ms = Number(amount) * (UNIT_MS[unit] ?? 0)
  if (ms > 0 && ms <= EXPIRES_DAYS_MAX * 86_400_000) return ms
  throw new Refusal(
    EXIT.usage,
    `--expires must be a time of at most ten years, such as 30m, 12h or 30d, not "${text}".`,
  )
}

function printTokens(call: Call, rows: ReturnType<KeptTokens['list']>): number {
  for (const row of rows) {
    const { name, role, reach, expires } = row
    const until = expires === undefined ? '' : `  until ${new Date(expires).toISOString()}`
    if (call.is('json')) printJson(row)
    else print(clean(`${name}  ${role}  reaches ${reach}${until}`))
  }
  if (rows.length === 0 && !call.is('json'))
    warn(`Nobody but you has a token. \`${typed`token make NAME`}\` makes one.`)
  return EXIT.ok
}
