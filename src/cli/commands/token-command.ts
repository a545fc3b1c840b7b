// `terret token`: manages the tokens of the server of this data folder. A running server sees a change at its next
// request.
import type { TokenRegistry as KeptTokens } from '../../server/token-registry.ts'
import type { Role, TokenBody } from '../../server/wire.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { print, printJson, warn, terretCommand } from '../present/print.ts'
import { withStore, type CommandContext } from '../state/command-context.ts'
import { tokenFile } from '../state/running-servers.ts'
import { remoteClient } from '../state/remote-server.ts'
import { parseSpanMs } from '../time-flags.ts'

export function tokenCommand(call: CommandArgs): Promise<number> {
  const [act = '', name] = call.words
  if (!['make', 'list', 'drop'].includes(act) || (act === 'list') !== (name === undefined))
    throw new CliError(EXIT.usage, 'Usage: terret token make NAME, terret token list, or terret token drop NAME')
  return withStore(async (place) => {
    if (remoteClient(place.store))
      throw new CliError(EXIT.usage, 'Tokens are made where the server runs: leave --server out.')
    const [{ TokenRegistry }, { withFileLock }] = await Promise.all([
      import('../../server/token-registry.ts'),
      import('../../stores/sqlite/file-lock.ts'),
    ])
    const tokens = new TokenRegistry(tokenFile(place.home), actorName(call), withFileLock)
    try {
      if (act === 'list') return printTokens(call, tokens.list())
      if (act === 'drop') tokens.drop(name ?? '')
      else return await makeAndPrintToken(place, call, tokens, name ?? '')
    } catch (error) {
      const { HttpRefusal } = await import('../../server/refusals.ts')
      if (error instanceof HttpRefusal)
        throw new CliError(error.status === 404 ? EXIT.missing : EXIT.conflict, error.message)
      throw error
    }
    if (call.is('json')) printJson({ dropped: name })
    else print(clean(`The token of ${name ?? ''} is no longer good.`))
    return EXIT.ok
  })
}

async function makeAndPrintToken(
  { store }: CommandContext,
  call: CommandArgs,
  tokens: KeptTokens,
  name: string,
): Promise<number> {
  const { makeNamedToken } = await import('../../server/answers/token-list.ts')
  const row = await makeNamedToken(tokens, store, tokenBody(call, name))
  if (call.is('json')) printJson(row)
  else {
    print(row.token)
    warn('It is shown once. It goes into the header "Authorization: Bearer TOKEN", or into TERRET_TOKEN.')
  }
  return EXIT.ok
}

const ROLES: readonly Role[] = ['viewer', 'operator', 'approver', 'admin']

function tokenBody(call: CommandArgs, name: string): TokenBody {
  const given = call.text('role') ?? 'viewer'
  const role = ROLES.find((each) => each === given)
  if (role === undefined) throw new CliError(EXIT.usage, `--role must be one of: ${ROLES.join(', ')}.`)
  const reach = call.text('reach') ?? 'all'
  if (reach !== 'all' && reach !== 'own') throw new CliError(EXIT.usage, '--reach must be own or all.')
  const roles =
    call
      .text('roles')
      ?.split(',')
      .map((each) => each.trim()) ?? []
  if (roles.includes('')) throw new CliError(EXIT.usage, '--roles must be names with commas between them.')
  const expires = call.text('expires')
  const over = expires === undefined ? {} : { expiresMs: parseSpanMs('expires', expires) }
  return { name, role, roles, reach, ...over, inherit: call.is('inherit') }
}

function printTokens(call: CommandArgs, rows: ReturnType<KeptTokens['list']>): number {
  for (const row of rows) {
    const { name, role, reach, expires } = row
    const until = expires === undefined ? '' : `  until ${new Date(expires).toISOString()}`
    if (call.is('json')) printJson(row)
    else print(clean(`${name}  ${role}  reaches ${reach}${until}`))
  }
  if (rows.length === 0 && !call.is('json'))
    warn(`Nobody but you has a token. \`${terretCommand`token make NAME`}\` makes one.`)
  return EXIT.ok
}
