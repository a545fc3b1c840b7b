// Where a page of a session stands, as its address says it: `v` the view, `e` the chosen event or call, `at` the moment that is shown.
import { useCallback, useEffect, useRef, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { chosenIn, type Chosen } from './lookup.ts'

export const VIEWS = ['timeline', 'waterfall', 'graph', 'context', 'raw'] as const
export type ViewName = (typeof VIEWS)[number]

export type Address = {
  readonly view: ViewName
  readonly chosen: Chosen | null
  /** Null: now. */
  readonly at: number | null
  readonly hrefOf: (changes: Changes) => string
  readonly go: (changes: Changes) => void
  readonly move: (at: number | null) => void
}
export type Changes = { readonly v?: ViewName | null; readonly e?: string | null; readonly at?: string | null }

/** A browser takes so many changes of an address a second. */
const WRITTEN_MS = 300

export function useAddress(): Address {
  const search = useSearch()
  const [path, navigate] = useLocation()
  const params = new URLSearchParams(search)
  const view = VIEWS.find((name) => name === params.get('v')) ?? 'timeline'
  const chosen = chosenIn(params.get('e'))
  const hrefOf = useCallback((changes: Changes) => path + changed(search, changes), [path, search])
  const go = useCallback((changes: Changes) => navigate(path + changed(location.search, changes)), [path, navigate])
  const replace = useCallback(
    (at: number | null) => {
      const changes = { at: at === null ? null : String(at), ...(at === null ? {} : { e: null }) }
      navigate(path + changed(location.search, changes), { replace: true })
    },
    [path, navigate],
  )
  const [at, move] = useMoment(chosenIn(params.get('at'))?.seq ?? null, replace)
  return { view, chosen, at, hrefOf, go, move }
}

/** It moves at once; the address follows. An address that changes otherwise, as by Back, moves it too. */
function useMoment(written: number | null, write: (at: number | null) => void) {
  const [at, setAt] = useState(written)
  const own = useRef(written)
  useEffect(() => {
    if (written === own.current) return
    own.current = written
    setAt(written)
  }, [written])
  useEffect(() => {
    if (at === own.current) return
    const timer = setTimeout(() => {
      own.current = at
      write(at)
    }, WRITTEN_MS)
    return () => clearTimeout(timer)
  }, [at, write])
  return [at, setAt] as const
}

function changed(search: string, changes: Changes): string {
  const params = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || (name === 'v' && value === 'timeline')) params.delete(name)
    else if (value !== undefined) params.set(name, value)
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
