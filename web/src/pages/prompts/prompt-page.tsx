import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { PromptCommit } from "../../../../src/experiments/contract/prompts.ts";
import { Page } from "../../frame/header.tsx";
import { Button } from "../../ui/button.tsx";
import { Copy } from "../../ui/code-block.tsx";
import { classes, DetailSection } from "../../ui/layout.tsx";
import { Markdown } from "../../ui/markdown/markdown.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import { promptRoute } from "./page.ts";
import { commitsQuery, manifestQuery, promptQuery, tagsQuery } from "./queries.ts";
import { templateOf } from "./template.ts";
import { TemplateView } from "./template-view.tsx";
import { UseIt } from "./use-it.tsx";

/** Length of a shortened commit hash in links and texts. The LangSmith clients use the same length. */
const SHORT_HASH = 8;

/** Shows a version of a prompt, by default the latest, beside the list of the prompt's commits. */
export function PromptPage() {
  const { name, commit } = promptRoute.useParams();
  const prompt = useQuery(promptQuery(name));
  const version = commit ?? prompt.data?.last_commit_hash ?? undefined;
  const manifest = useQuery(manifestQuery(name, version));
  const tags = useQuery(tagsQuery(name));
  const { data } = manifest;
  const error = prompt.error ?? manifest.error;
  const tagsOf = (hash: string) => (tags.data ?? []).filter(({ commit_hash }) => commit_hash === hash);
  const hash = data?.commit_hash;
  return (
    <Page
      title={name}
      crumbs={[{ label: "Prompts", to: "/prompts" }]}
      beside={
        hash && (
          <span className="flex items-center gap-1.5">
            <span className="inline-flex items-center gap-0.5 font-mono text-table" title={hash}>
              {hash.slice(0, SHORT_HASH)}
              <Copy text={hash} label={`Copy hash ${hash}`} />
            </span>
            {hash === prompt.data?.last_commit_hash && <Badge>latest</Badge>}
            {tagsOf(hash).map(({ tag_name }) => (
              <Badge key={tag_name}>{tag_name}</Badge>
            ))}
          </span>
        )
      }
    >
      {error && !data ? (
        <ErrorState
          error={error}
          retry={() => void Promise.all([prompt.refetch(), version !== undefined && manifest.refetch()])}
        />
      ) : (
        <div className="grid grid-cols-[minmax(0,1fr)_18rem] items-start gap-8 max-lg:grid-cols-1">
          <div className="grid grid-cols-1 gap-5">
            {prompt.data?.description && <p className="break-words text-text-2">{prompt.data.description}</p>}
            {data ? (
              <>
                <TemplateView key={data.commit_hash} manifest={data.manifest} />
                <UseIt identifier={commit ? `${name}:${commit}` : name} template={templateOf(data.manifest)} />
              </>
            ) : prompt.data && version === undefined ? (
              <EmptyState
                title="No commits yet"
                command={`client.push_prompt(${JSON.stringify(name)}, object=template)`}
              >
                Push the first version with the <code>langsmith</code> client.
              </EmptyState>
            ) : (
              <SkeletonRows label="Loading prompt" rows={6} />
            )}
            {prompt.data?.readme && (
              <DetailSection title="Readme">
                <Markdown text={prompt.data.readme} />
              </DetailSection>
            )}
          </div>
          <Commits name={name} selected={hash} tagsOf={(hash) => tagsOf(hash).map(({ tag_name }) => tag_name)} />
        </div>
      )}
    </Page>
  );
}

function Commits({
  name,
  selected,
  tagsOf,
}: {
  name: string;
  selected: string | undefined;
  tagsOf(hash: string): string[];
}) {
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(commitsQuery(name));
  const commits = data?.pages.flatMap((page) => page.commits) ?? [];
  if (commits.length === 0) return null;
  return (
    <DetailSection title={`Commits (${data?.pages[0]?.total})`}>
      <ol aria-label="Commits" className="divide-y divide-line rounded-lg border border-line bg-raised">
        {commits.map((commit, index) => (
          <li key={commit.id}>
            <CommitLink
              commit={commit}
              tags={[...(index === 0 ? ["latest"] : []), ...tagsOf(commit.commit_hash)]}
              isSelected={commit.commit_hash === selected}
            />
          </li>
        ))}
      </ol>
      {hasNextPage && (
        <Button small look="quiet" className="mt-1" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more commits
        </Button>
      )}
    </DetailSection>
  );
}

const CommitLink = ({
  commit: { repo, commit_hash, description, created_at },
  tags,
  isSelected,
}: {
  commit: PromptCommit;
  tags: readonly string[];
  isSelected: boolean;
}) => (
  <Link
    to="/prompts/$name/{-$commit}"
    params={{ name: repo, commit: commit_hash.slice(0, SHORT_HASH) }}
    aria-current={isSelected ? "page" : undefined}
    className={classes(
      "grid gap-1 rounded-lg px-3 py-2 text-table -outline-offset-2",
      isSelected ? "bg-selected" : "hover:bg-hover",
    )}
  >
    <span className="flex items-center gap-3">
      <span className="font-mono">{commit_hash.slice(0, SHORT_HASH)}</span>
      <span className="ml-auto text-text-2">
        <RelativeTime time={created_at} />
      </span>
    </span>
    {description && <span className="break-words">{description}</span>}
    {tags.length > 0 && (
      <span className="flex flex-wrap gap-1">
        {tags.map((tag) => (
          <Badge key={tag}>{tag}</Badge>
        ))}
      </span>
    )}
  </Link>
);
