# ruff: noqa: E501 - what tools print is as wide as it is
"""Memory that ran out, in the words of tools other than torch's allocator, kernel and launchers."""

import pytest

from trainwright.diagnose.outofmemory import explain, help_for
from trainwright.messages import LANGUAGES, render

GIB, MIB = 1 << 30, 1 << 20
TF_GPU = "ResourceExhaustedError: OOM when allocating tensor with shape[32,512,512,64] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
ON_GPU = {
    "ComfyUI": ("torch.OutOfMemoryError: Allocation on device \nGot an OOM, unloading all loaded models.", "driver", None),
    "ROCm": ("RuntimeError: HIP error: out of memory\nHIP kernel errors might be asynchronously reported", "driver", None),
    "torch 2.9 and later": ("torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in", "driver", None),
    "cuDNN": ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "library", None),
    "NCCL in its log": ("node01:42:43 [0] include/alloc.h:99 NCCL WARN Cuda failure 'out of memory'", "nccl", None),
    "Metal, one buffer": ("RuntimeError: Invalid buffer size: 14.50 GiB", "buffer-limit", int(14.5 * GIB)),
    "Metal, MLX and llama.cpp": ("error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "driver", None),
    "transformers": ("ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.", "dispatched", None),
    "accelerate": ("RuntimeError: No executable batch size found, reached zero.", "no-batch", None),
    "bitsandbytes in a wheel": ("Error out of memory at line 97 in file /src/csrc/pythonInterface.cpp", "bitsandbytes", None),
    "XLA": ("XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0", "too-big-untold", 2 * GIB),
    "TensorFlow": (TF_GPU, "too-big-untold", 32 * 512 * 512 * 64 * 4),
    "TensorFlow's driver": ("cuda_driver.cc:794] failed to allocate 10.75G (11542724608 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "too-big-untold", 11_542_724_608),
    "TensorFlow's allocator": ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 256.00MiB (rounded to 268435456)requested by op Conv2D", "too-big-untold", 256 * MIB),
    "TensorRT": ("[TRT] [W] Requested amount of GPU memory (8589934592 bytes) could not be allocated.", "too-big-untold", 8 * GIB),
    "TensorRT-LLM": ("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory (tllmBuffers.h:111)", "driver", None),
    "ONNX Runtime": ("onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 536870912", "too-big-untold", 512 * MIB),
    "ONNX Runtime's CUDA": ("CUDA failure 2: out of memory ; GPU=0 ; hostname=node01 ; expr=cudaMalloc((void**)&p, size);", "driver", None),
    "Paddle": ("Out of memory error on GPU 0. Cannot allocate 256.000000MB memory on GPU 0, 7.5GB memory has been allocated", "too-big-untold", 256 * MIB),
    "vLLM, context": ("ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (14512).", "cache", None),
    "vLLM, warm-up": ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`", "warm-up", None),
    "vLLM, preemption": ("Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.", "cache", None),
    "SGLang": ("RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 5120 tokens.", "cache", None),
    "llama.cpp, Vulkan": ("ggml_vulkan: Device memory allocation of size 1073741824 failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", "too-big-untold", GIB),
    "llama.cpp, model": ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "engine-full", None),
    "Ollama": ("Error: llama runner process has terminated: cudaMalloc failed: out of memory", "engine-full", None),
}  # fmt: skip
ON_HOST = {
    "kernel, whole computer": ("Out of memory: Killed process 42 (python) total-vm:98765432kB, anon-rss:62914560kB, file-rss:1024kB", "host-unsized", None),
    "kernel, container": ("Memory cgroup out of memory: Killed process 42 (python3) total-vm:98765432kB, anon-rss:62914560kB, file-rss:1kB", "host-unsized", None),
    "kernel before 5": ("[ 1234.567] Out of memory: Kill process 4242 (python) score 912 or sacrifice child", "host-unsized", None),
    "kernel, who asked": ("python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "host-unsized", None),
    "Slurm": ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.batch.", "host-unsized", None),
    "Slurm's srun": ("srun: error: node01: task 0: Out Of Memory", "host-unsized", None),
    "kubectl": ("command terminated with exit code 137", "host-unsized", None),
    "docker compose": ("train-1 exited with code 137", "host-unsized", None),
    "Ray": ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "host-unsized", None),
    "Windows": ("OSError: [WinError 8] Not enough memory resources are available to process this command", "host-unsized", None),
    "Colab": ("Your session crashed after using all available RAM.", "host-unsized", None),
    "Kaggle": ("Your notebook tried to allocate more memory than is available. It has restarted.", "host-unsized", None),
    "Arrow": ("pyarrow.lib.ArrowMemoryError: malloc of size 268435456 failed", "host", 256 * MIB),
    "llama.cpp, processor": ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 17179869184\nllama_model_load: error loading model: unable to allocate CPU buffer", "host", 16 * GIB),
    "TensorFlow, processor": (TF_GPU.replace("GPU", "CPU"), "host-unsized", None),
    "torch's tensors in shared memory": ("RuntimeError: unable to allocate shared memory(shm) for file </torch_4242_123_4>: Resource temporarily unavailable (11)", "shared-memory", None),
    "NCCL in a container": ("misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-ieP0kL to 33030532 bytes", "nccl-shared", None),
    "Triton": ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 135168, Hardware limit: 101376. Reducing block sizes", "kernel-limit", None),
}  # fmt: skip


@pytest.mark.parametrize("tool", [*ON_GPU, *ON_HOST])
def test_memory_that_ran_out_in_the_words_of_each_tool(tool: str) -> None:
    text, says, asked = (ON_GPU | ON_HOST)[tool]
    found = explain(f"step 10 of 100\n{text}\n")
    assert (found.says.id, found.account.asked) == (f"diagnose.oom.{says}", asked)
    assert found.on_gpu == (tool in ON_GPU)
    for language in LANGUAGES:
        sentences = (found.says, *(each.says for each in help_for(found).fixes))
        assert all("diagnose." not in render(each, language) for each in sentences)


def test_the_kernels_log_says_what_the_process_held() -> None:
    assert explain(ON_HOST["kernel, container"][0]).account.process == 60 * GIB


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: too many resources requested for launch",
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: unable to open shared memory object </torch_4_1> in read-write mode: Too many open files (24)",
        "exited with code 1375, exit code: 1",
        "out of memory is what this page is about",
    ],
)
def test_other_errors_are_not_memory_that_ran_out(text: str) -> None:
    assert explain(text).kind == "none"


@pytest.mark.parametrize(
    "text",
    [
        "OOM when allocating tensor with shape[,,,] and type float",
        "OOM when allocating tensor with shape[99999999999] and type string",
        "out of resource: shared memory, Required: many, Hardware limit: few",
        "Failed to allocate memory for requested buffer of size BFCArena::AllocateRawInternal",
        "Out of memory: Killed process 42 (python) anon-rss:kB",
        "ggml_vulkan: Device memory allocation of size  failed.",
        "Invalid buffer size: none GiB",
    ],
)
def test_sizes_that_are_cut_off_are_not_made_up(text: str) -> None:
    found = explain(text)
    assert (found.account.asked, found.account.process) == (None, None)
    assert render(found.says, "en")
