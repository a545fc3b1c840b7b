// What pages read, kept and read again: the list of sessions, what waits, who one is. Live news goes into the same place, so a list and a
// detail never disagree.
import { QueryClient, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { api, ApiError, type SessionsQuery } from './api.ts'
import { readAnew } from './anew.ts'
import { Live, type LiveState } from './live.ts'
import { currentToken, onToken } from './token.ts'

const STALE_MS = 5_000
const PENDING_MS = 15_000
const USAGE_MS = 60_000
const TRIES = 2

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      refetchOnWindowFocus: true,
      // What the server refused it refuses again.
      retry: (count, error) =>
        count < TRIES && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
})

export const live = new Live(readAnew)

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => live.subscribe(listener),
    () => live.state,
  )
}

export function useToken(): string | null {
  return useSyncExternalStore(onToken, currentToken)
}

export function useMe() {
  return useQuery({ queryKey: ['me'], queryFn: ({ signal }) => api.me(signal) })
}

export function useHealth() {
  return useQuery({ queryKey: ['health'], queryFn: ({ signal }) => api.health(signal), refetchInterval: PENDING_MS })
}

/** What waits for people in all sessions. Also in the background: a tab that nobody sees counts on. */
export function usePending() {
  return useQuery({
    queryKey: ['pending'],
    queryFn: ({ signal }) => api.pending(signal),
    refetchInterval: PENDING_MS,
    refetchIntervalInBackground: true,
  })
}

/** What was spent, a day at a time, and in the last hour. */
export function useUsage(days: number) {
  return useQuery({
    queryKey: ['usage', days],
    queryFn: ({ signal }) => api.usage({ days }, signal),
    refetchInterval: ({ state }) => (state.data?.complete === false ? STALE_MS : USAGE_MS),
  })
}

/** Only admins may see who has a token. */
export function useTokens(wanted: boolean) {
  return useQuery({ queryKey: ['tokens'], queryFn: ({ signal }) => api.tokens(signal), enabled: wanted })
}

export function useAgents() {
  return useQuery({ queryKey: ['agents'], queryFn: ({ signal }) => api.agents(signal) })
}

export function useDue() {
  return useQuery({ queryKey: ['due'], queryFn: ({ signal }) => api.due(signal), refetchInterval: PENDING_MS })
}

/** The list of sessions, page by page. */
export function useSessions(query: SessionsQuery, isWanted = true) {
  return useInfiniteQuery({
    queryKey: ['sessions', query],
    queryFn: ({ signal, pageParam }) =>
      api.sessions(pageParam === null ? query : { ...query, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    enabled: isWanted,
  })
}
