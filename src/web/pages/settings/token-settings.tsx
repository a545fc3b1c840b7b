// The list of tokens: admins can make and drop them. A new token is shown once; no later answer contains it.
import { BASE } from '../../data/mount.ts'
import { type SyntheticEvent, useState } from 'react'
import type { Role, TokenMade, TokenRow } from '../../../server/wire.ts'
import { apiActions } from '../../data/api.ts'
import { queries, useTokens } from '../../data/queries.ts'
import { Button, CopyButton } from '../../parts/button.tsx'
import { Ago } from '../../parts/figures.tsx'
import { Loading, ErrorPanel } from '../../parts/page-states.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { toastResult } from '../../shell/toasts.tsx'
import { SettingsSection } from './settings-section.tsx'

const ROLES: readonly Role[] = ['viewer', 'operator', 'approver', 'admin']

export function TokenSettings() {
  const { data, isPending, isError, error, refetch } = useTokens(true)
  const [made, setMade] = useState<TokenMade | null>(null)
  const rows = data?.tokens ?? []
  return (
    <SettingsSection
      title="Tokens"
      about="A token is a person or a program. What it does is in the logs under its name."
    >
      {isPending ? <Loading what="Loading tokens" rows={2} /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && rows.length === 0 ? <p className="dim">Nobody else has a token yet.</p> : null}
      {rows.length > 0 ? (
        <ul className="tokens">
          {rows.map((row) => (
            <TokenLine key={row.name} row={row} />
          ))}
        </ul>
      ) : null}
      {made ? <NewTokenNotice made={made} onHide={() => setMade(null)} /> : null}
      <TokenForm onMade={setMade} />
    </SettingsSection>
  )
}

async function refetchTokens(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ['tokens'] })
}

function TokenLine({ row: { name, role, roles, reach, made, expires } }: { readonly row: TokenRow }) {
  const [asks, setAsks] = useState(false)
  const drop = async (): Promise<void> => {
    await apiActions.dropToken(name)
    await refetchTokens()
  }
  return (
    <li className="token">
      <strong>
        <Text text={name} />
      </strong>
      <span className="dim">
        {role}
        {roles.length > 0 ? <Text text={` as ${roles.join(', ')}`} /> : null}, {reach === 'own' ? 'own' : 'all'}{' '}
        sessions
        {expires === undefined ? null : `, until ${new Date(expires).toISOString().slice(0, 10)}`}
      </span>
      <span className="dim token-age">
        <Ago at={made} />
      </span>
      {asks ? (
        <>
          <Button size="small" onPress={() => setAsks(false)}>
            Keep it
          </Button>
          <Button
            size="small"
            kind="danger"
            onPress={() => toastResult(drop(), `The token of ${name} is no longer good`)}
          >
            Drop it now
          </Button>
        </>
      ) : (
        <Button size="small" label={`Drop the token of ${name}`} onPress={() => setAsks(true)}>
          Drop
        </Button>
      )}
    </li>
  )
}

function NewTokenNotice({ made: { name, token }, onHide }: { readonly made: TokenMade; readonly onHide: () => void }) {
  const address = `${location.origin}${BASE}/#token=${token}`
  return (
    <div className="token-made" role="status">
      <p>
        The token of <Text text={name} />. It is shown here once: copy it now.
      </p>
      <div className="command">
        <code>{token}</code>
        <CopyButton text={token} label="Copy the token" />
      </div>
      <div className="setting-acts">
        <span className="dim">
          Or the address with it <CopyButton text={address} label="Copy the address with the token" />
        </span>
        <span className="spread" />
        <Button size="small" onPress={onHide}>
          I have it
        </Button>
      </div>
    </div>
  )
}

const DAY_MS = 86_400_000

/** 0: it never expires. */
function LifetimeField({ days, onChoose }: { readonly days: number; readonly onChoose: (days: number) => void }) {
  return (
    <label>
      Good for
      <select className="field" value={days} onChange={(event) => onChoose(Number(event.target.value))}>
        <option value={0}>ever</option>
        <option value={1}>a day</option>
        <option value={30}>30 days</option>
        <option value={365}>a year</option>
      </select>
    </label>
  )
}

function TokenForm({ onMade }: { readonly onMade: (made: TokenMade) => void }) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [roles, setRoles] = useState('')
  const [reach, setReach] = useState<'own' | 'all'>('all')
  const [days, setDays] = useState(0)
  const make = async (): Promise<void> => {
    const over = days === 0 ? {} : { expiresMs: days * DAY_MS }
    const named = roles.split(',').map((each) => each.trim())
    const made = await apiActions.makeToken({ name, role, reach, ...over, roles: named.filter((each) => each !== '') })
    setName('')
    setRoles('')
    onMade(made)
    await refetchTokens()
  }
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (event.nativeEvent.isTrusted && name.trim() !== '') toastResult(make())
  }
  return (
    <form className="token-form" onSubmit={submit}>
      <label>
        Name
        <input
          className="field"
          value={name}
          maxLength={100}
          autoComplete="off"
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label>
        Role
        <select className="field" value={role} onChange={(event) => setRole(event.target.value as Role)}>
          {ROLES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        Approves as
        <input
          className="field"
          value={roles}
          placeholder="lead, finance"
          autoComplete="off"
          onChange={(event) => setRoles(event.target.value)}
        />
      </label>
      <label>
        Reaches
        <select
          className="field"
          value={reach}
          onChange={(event) => setReach(event.target.value === 'own' ? 'own' : 'all')}
        >
          <option value="all">all sessions</option>
          <option value="own">its own</option>
        </select>
      </label>
      <LifetimeField days={days} onChoose={setDays} />
      <Button type="submit" disabled={name.trim() === ''} onPress={() => {}}>
        Make a token
      </Button>
    </form>
  )
}
