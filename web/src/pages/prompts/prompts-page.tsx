import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Prompt } from "../../../../src/experiments/contract/prompts.ts";
import { API_URL } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { count, DASH } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { promptsRoute } from "./page.ts";
import { promptsQuery } from "./queries.ts";

/** Lists the prompts of the workspace, most recently changed first. */
export function PromptsPage() {
  const { q } = promptsRoute.useSearch();
  const navigate = promptsRoute.useNavigate();
  const list = useInfiniteQuery(promptsQuery(q));
  const prompts = useMemo(() => list.data?.pages.flatMap(({ repos }) => repos), [list.data]);
  return (
    <Page title="Prompts" fill>
      <div className="border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          type="search"
          aria-label="Search prompts by name or description"
          placeholder="Search prompts"
          className="max-w-72"
          value={q}
          onChange={(text) => void navigate({ search: { q: text }, replace: true })}
        />
      </div>
      {list.error && !prompts ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : prompts ? (
        <Table
          name="Prompts"
          rows={prompts}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          onOpen={({ repo_handle: name }) => void navigate({ to: "/prompts/$name/{-$commit}", params: { name } })}
          onEnd={() => list.hasNextPage && !list.isFetchingNextPage && void list.fetchNextPage()}
          className="flex-1"
          empty={
            q ? (
              <EmptyState title={`No prompts match “${q}”`}>Only names and descriptions are searched.</EmptyState>
            ) : (
              <NoPrompts />
            )
          }
        />
      ) : (
        <SkeletonRows label="Loading prompts" rows={10} />
      )}
    </Page>
  );
}

const NoPrompts = () => (
  <EmptyState
    title="No prompts yet"
    command={[
      "from langchain_core.prompts import ChatPromptTemplate",
      "from langsmith import Client",
      "",
      `client = Client(api_url=${JSON.stringify(`${API_URL}/api/v1`)})`,
      'template = ChatPromptTemplate.from_messages([("system", "You speak {language}."), ("human", "{input}")])',
      'client.push_prompt("greeting", object=template)',
    ].join("\n")}
  >
    Push a prompt with the <code>langsmith</code> client. Each change creates a commit.
  </EmptyState>
);

const COLUMNS: Column<Prompt>[] = [
  {
    id: "name",
    header: "Prompt",
    cell: ({ repo_handle: name, is_archived }) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link to="/prompts/$name/{-$commit}" params={{ name }} className="truncate font-medium hover:underline">
          {name}
        </Link>
        {is_archived && <Badge>archived</Badge>}
      </span>
    ),
    width: 260,
    grow: true,
    sticky: true,
    card: "title",
  },
  {
    id: "commit",
    header: "Last commit",
    cell: ({ last_commit_hash }) =>
      last_commit_hash ? (
        <span className="font-mono">{last_commit_hash.slice(0, 8)}</span>
      ) : (
        <span className="text-text-3">None</span>
      ),
    width: 120,
    card: "first",
  },
  {
    id: "commits",
    header: "Commits",
    cell: ({ num_commits }) => count(num_commits),
    width: 100,
    numeric: true,
  },
  {
    id: "tags",
    header: "Tags",
    cell: ({ tags }) => (
      <span className="flex gap-1 overflow-hidden">
        {tags.length === 0 && <span className="text-text-3">{DASH}</span>}
        {tags.map((tag) => (
          <Badge key={tag}>{tag}</Badge>
        ))}
      </span>
    ),
    width: 180,
  },
  {
    id: "updated",
    header: "Updated",
    cell: ({ updated_at }) => <RelativeTime time={updated_at} />,
    width: 130,
    card: "first",
  },
  {
    id: "description",
    header: "Description",
    cell: ({ description }) => <span className="text-text-2">{description}</span>,
    width: 320,
    grow: true,
    card: "hidden",
  },
];
