// The state of a session's page in its address: `v` the view, `e` the chosen event or call, `at` the shown moment.
import { useCallback, useEffect, useRef, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { parseChosen, type ChosenEvent } from './find-row.ts'

export const VIEWS = ['timeline', 'waterfall', 'graph', 'context', 'raw'] as const
export type ViewName = (typeof VIEWS)[number]

export type PageAddress = {
  readonly view: ViewName
  readonly chosen: ChosenEvent | null
  /** Null: now. */
  readonly at: number | null
  readonly hrefOf: (changes: AddressChanges) => string
  readonly go: (changes: AddressChanges) => void
  readonly move: (at: number | null) => void
}
export type AddressChanges = { readonly v?: ViewName | null; readonly e?: string | null; readonly at?: string | null }

/** Browsers limit the number of address changes per second. */
const WRITTEN_MS = 300

export function usePageAddress(): PageAddress {
  const search = useSearch()
  const [path, navigate] = useLocation()
  const params = new URLSearchParams(search)
  const view = VIEWS.find((name) => name === params.get('v')) ?? 'timeline'
  const chosen = parseChosen(params.get('e'))
  const hrefOf = useCallback((changes: AddressChanges) => path + changeSearch(search, changes), [path, search])
  const go = useCallback(
    (changes: AddressChanges) => navigate(path + changeSearch(location.search, changes)),
    [path, navigate],
  )
  const replace = useCallback(
    (at: number | null) => {
      const changes = { at: at === null ? null : String(at), ...(at === null ? {} : { e: null }) }
      navigate(path + changeSearch(location.search, changes), { replace: true })
    },
    [path, navigate],
  )
  const [at, move] = useMoment(parseChosen(params.get('at'))?.seq ?? null, replace)
  return { view, chosen, at, hrefOf, go, move }
}

/**
 * The moment changes at once, and the address follows. If the address changes by itself, as by Back, the moment follows
 * it.
 */
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

function changeSearch(search: string, changes: AddressChanges): string {
  const params = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || (name === 'v' && value === 'timeline')) params.delete(name)
    else if (value !== undefined) params.set(name, value)
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
